"""Sentences of a document that speak to a language model instead of to a reader: they support no answer.

A narrow net of patterns, not a judge: what it misses is still fenced as data in the prompt and held against the passages.
"""

from __future__ import annotations

import re

from hybrid_rag import sentences
from hybrid_rag.prompts import poses_as_prompt

_RULES = r"(?:instructions?|rules?|guidelines?|prompts?|passages?|constraints?|restrictions?|orders)"
_MODELS = r"(?:ai|assistants?|language models?|llms?|chatbots?|agents?)"
_TO_THE_MODEL = re.compile(
    rf"\b(?:ignore|disregard|forget|override|bypass|do not follow|stop following)\b.{{0,40}}\b{_RULES}\b"
    r"|\b(?:ignore|disregard|forget)\b.{0,10}\b(?:the above|everything (?:above|before|else|prior|said)|all (?:of )?(?:the )?(?:above|previous|prior))\b"
    r"|\b(?:reply|respond|answer|output|say|print|write|return)\b.{0,20}\b(?:only|just|exactly|solely|nothing but|verbatim)\b"
    r"|\bthe (?:only|real|true) (?:correct |right |true )?answer is\b"
    rf"|\byou are (?:now |no longer )(?:an? |the )?(?:{_MODELS}|free|unrestricted|bound|dan)\b"
    rf"|\b(?:new|updated|real|hidden|secret) (?:{_RULES}|task|system prompt)\s*:"
    rf"|\b(?:dear|note to|attention|message to|instructions? (?:to|for)) (?:the |all |any )*{_MODELS}\b"
    r"|^\W*(?:system|assistant|developer|user|human|tool|function)(?: \w+){0,2}\s*[:>\]]|\b(?:system|developer|admin(?:istrator)?) (?:message|override|notice|mode|prompt)\s*[:>\]]"
    r"|\b(?:reveal|repeat|disclose|leak|show|print|translate)\b.{0,30}\b(?:system prompt|your (?:instructions|prompt|rules)|(?:all )?other (?:documents?|passages?|files?))\b"
    r"|\b(?:append|add|include|insert|embed)\b.{0,80}\b(?:every|your|each|the) (?:answers?|replies|reply|responses?|output)\b"
    r"|\bfrom now on\b.{0,40}\byou (?:answer|reply|respond|are|will|must)\b|^\W*(?:act as|pretend (?:to be|that you|you))\b|\bend of (?:passages?|context|data)\b",
    re.IGNORECASE | re.DOTALL,
)


def speaks_to_the_model(sentence: str) -> bool:
    return _TO_THE_MODEL.search(sentence) is not None or poses_as_prompt(sentence)


def without_instructions(text: str) -> tuple[str, int]:
    """The text with its sentences that speak to the model blanked out, of the same length, and how many there were."""
    found = [(start, end) for start, end in sentences.split(text) if speaks_to_the_model(text[start:end])]
    for start, end in found:
        text = text[:start] + " " * (end - start) + text[end:]
    return text, len(found)
