"""Citations checked by code: [n] exists, and the numbers, dates and names of the sentence stand in the cited passage."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from hybrid_rag import sentences
from hybrid_rag.support import says_something, spans_of_support, supports

__all__ = ["Checked", "CheckedStream", "check", "cited", "spans_of_support", "strip_links", "supports"]

_MARK = re.compile(r"\s*[\[【(](\d{1,3}(?:\s*[,;]\s*\d{1,3})*)[\]】)]")
_ROUND = re.compile(r"\s*\((\d{1,2}(?:\s*[,;]\s*\d{1,2})*)\)(?=[.!?]?$)")
_NAMED = r"(?:passages?\s*)?(?:n\s*=\s*[\"“”']?)?"  # [passage 2], or [n=2] as the fence has it
_BRACKETED = re.compile(rf"\s*[\[【]{_NAMED}(\d{{1,3}}[\"“”']?(?:\s*(?:[,;]|and)\s*{_NAMED}\d{{1,3}}[\"“”']?)*)[\]】]", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"\s*[\[【](?:n|x|#|\.{3}|…|source|passage|citation)s?(?: needed)?[\]】]", re.IGNORECASE
)  # the form itself, not a number
_N = r"\[?(\d{1,3})\]?"
_BY_WORDS = re.compile(  # According to passage 2, …; Passage 2 states that …; … (passage 2)
    rf"\(\s*(?:see )?passages? {_N}(?:(?:,| and|, and) {_N})*\s*\)"
    rf"|\b(?:(?:according to|based on|as (?:stated|mentioned|described|given) in|as per) (?:the )?passages? {_N}(?:(?:,| and|, and) {_N})*\b\]?,?"
    rf"|(?:the )?passages? {_N}(?: and {_N})? (?:states?|says?|mentions?|notes?|indicates?|tells?(?: us)?|explains?)(?: that\b|,|:)?)",
    re.IGNORECASE,
)
_ABOUT_SOURCE = re.compile(  # says only where the sentence before stands
    r"^(?:this|that|it|the (?:answer|information|statement|above)|these|both)\b(?: \w+){0,3} (?:stated|mentioned|found|given|provided|supported|described|"
    r"based|cited|taken|comes?|stands?|derived) (?:in|by|on|from|at)\b(?: \w+){0,3} (?:passages?|sources?|documents?|context|texts?)\b(?!.*\b(?:as|that)\b)",
    re.IGNORECASE,
)
_PREAMBLE = re.compile(  # Based on the passages, …; The passages state that …
    r"^(?:(?:based on|according to|from|as (?:stated|mentioned|described|given) in) (?:the |these |your )?(?:\w+ )?(?:passages?|context|documents?|sources?|texts?)"
    r"(?: (?:provided|given|above))?,|(?:the |these )?(?:\w+ )?(?:passages?|documents?|sources?) (?:states?|says?|mentions?|indicates?|tells? us|explains?) that\b)",
    re.IGNORECASE,
)
_AFTER_STOP = re.compile(r"([.!?])((?:\s*\[\d[\d\s,;]*\])+)")
_URL = r"(?:https?|ftp|file|data|javascript|mailto):[^\s<>\"'\])]*"
_LINK = re.compile(
    rf"!?\[([^\]\n]*)\](?:\(\s*<?[^()\s]*(?:\([^()\s]*\)[^()\s]*)*>?(?:\s+[\"'(][^\n]*?[\"')])?\s*\)|\[[^\]\n]*\])|<?{_URL}>?|</?(?:a|img|iframe|script|object|embed|form|video|audio|svg|link|meta)\b[^<>]*>",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]")
_THERE = r"(?:in|by) (?:the |any |these |those |my |your )?(?:\w+ )?(?:passages?|documents?|context|texts?|sources?|files?)"
_DONT_KNOW = re.compile(
    r"^\W*(?:i (?:do not|don['’]?t|cannot|can['’]?t) (?:know|answer|say|tell)|i(?: am|['’]m) (?:not sure|unable)|unknown\W*$|no answer\W*$"
    rf"|not (?:mentioned|stated|given|specified|found|provided|known)(?: {_THERE}|\W*$)|not {_THERE}"
    r"|(?:das )?wei(?:ß|ss) ich nicht|ich wei(?:ß|ss) (?:es|das) nicht|je ne (?:le )?sais pas|no lo s[eé]\b|non lo so\b|n[ãa]o sei\b|(?:dat )?weet ik niet|ik weet het niet)",
    re.IGNORECASE,
)
_SAYS_NOTHING = re.compile(
    r"\b(?:passages?|context|(?:provided|given|above) (?:documents?|texts?|sources?|information))\b[^.!?]{0,40}\b(?:do|does|did)(?: not|n['’]t)\b[^.!?]{0,20}"
    r"\b(?:mention|contain|provide|say|state|specif|include|hold|answer|give|offer|describ|list)"
    r"|\bthere (?:is|was|are) no (?:information|mention|answer)\b|^no information\b",
    re.IGNORECASE,
)
_YES_NO = re.compile(r"^(?:yes|no|ja|nein|oui|non|sí)\W*$", re.IGNORECASE)
_ITEM = re.compile(r"^[ \t]*(?:[-*•+]|\d{1,2}[.)])[ \t]+", re.MULTILINE)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Checked:
    """A generated answer after the check. ``sentences``: (text, numbers of the passages that support it)."""

    text: str
    sentences: tuple[tuple[str, tuple[int, ...]], ...]
    notes: tuple[str, ...]
    abstained: bool = False


def check(answer: str, passages: Sequence[tuple[int, str]], *, keep_links: bool = False) -> Checked:
    """Hold an answer against its passages, (n, text) each.

    A sentence whose citation fails is cited anew when exactly one passage supports it, else left out. An answer that
    says it does not know is an abstention, whatever it cites. Links are reduced to their text; ``keep_links`` lets
    addresses stand that a passage holds letter for letter.
    """
    plain = _plain(answer, passages if keep_links else ())
    if _DONT_KNOW.match(plain):
        return Checked("", (), (), abstained=True)
    if not _WORD.search(_MARK.sub("", plain)):
        only_mark = _MARK.search(plain) is not None
        return Checked("", (), ("The model named a passage and gave no answer.",) if only_mark else (), abstained=not only_mark)
    kept: list[tuple[str, tuple[int, ...]]] = []
    notes: list[str] = []
    opening, unknowing = "", False
    for sentence, cited in _sentences(plain, [n for n, _ in passages]):
        if _DONT_KNOW.match(sentence) or _SAYS_NOTHING.search(sentence):
            unknowing = True
            continue
        if _YES_NO.match(sentence):
            opening = f"{sentence.rstrip('.,!')}: "
            continue
        good = _checked(sentence, cited, passages, notes)
        if good:
            kept.append((opening + sentence, good))
            opening = ""
    text = " ".join(_with_marks(sentence, good) for sentence, good in kept)
    return Checked(text, tuple(kept), tuple(notes), abstained=unknowing and not kept)


class CheckedStream:
    """Passes on an answer while it is written, sentence by sentence, each only after its check."""

    def __init__(self, passages: Sequence[tuple[int, str]], on_text: Callable[[str], None], *, keep_links: bool = False) -> None:
        self._passages, self._on_text, self._keep_links = passages, on_text, keep_links
        self._written, self._shown = "", ""

    def add(self, piece: str) -> None:
        """A further piece of the model's text."""
        self._written += piece
        if not piece.strip() or not re.search(r"[.!?\n]", self._written):
            return
        plain = _plain(self._written, ())
        spans = sentences.split(plain)
        if len(spans) > 1 and _WORD.search(_MARK.sub("", plain[spans[-1][0] :])):
            self._show(check(plain[: spans[-1][0]], self._passages, keep_links=self._keep_links).text)

    def finish(self, text: str) -> None:
        """The whole checked answer: what of it was not shown yet."""
        self._show(text)

    def _show(self, text: str) -> None:
        if len(text) > len(self._shown) and text.startswith(self._shown):
            self._on_text(text[len(self._shown) :])
            self._shown = text


def cited(answer: str) -> tuple[int, ...]:
    """The numbers of the passages that a text cites, in any of the forms that models write, each once."""
    return tuple(dict.fromkeys(n for _, numbers in _sentences(_plain(answer, ()), range(1, 10)) for n in numbers))


def strip_links(text: str, allowed: Sequence[tuple[int, str]] = ()) -> str:
    """Links, images and tags that load something become their text; citation marks stay.

    Addresses that one of the ``allowed`` passages holds letter for letter stay, as text.
    """

    def plain(match: re.Match[str]) -> str:
        label = match[1]
        if re.fullmatch(r"(?:\[\d+\])+", match[0]):
            return match[0]
        if label is not None:
            return f"[{label}]" if label.strip().isdigit() and not match[0].startswith("!") else label
        address = match[0].strip("<>").rstrip(".,;:!?")
        if any(address in passage for _, passage in allowed):
            return match[0].strip("<>")
        return match[0].strip("<>")[len(address) :] if not match[0].startswith("<") else ""

    return _LINK.sub(plain, text)


def _plain(answer: str, allowed: Sequence[tuple[int, str]]) -> str:
    """Without what a reasoning model thinks aloud and without links; marks as [n] before the full stop."""
    text = strip_links(_THOUGHT.sub("", answer), allowed)
    text = _BRACKETED.sub(lambda m: f" [{', '.join(re.findall(r'[0-9]+', m[1]))}]", text)
    text = _BY_WORDS.sub(lambda m: f" [{', '.join(re.findall(r'[0-9]+', m[0]))}]", _PLACEHOLDER.sub("", text))
    text = _ITEM.sub("- ", text.replace("**", "").replace("__", ""))
    return _AFTER_STOP.sub(lambda m: f"{m[2]}{m[1]}", text).strip()


def _sentences(text: str, numbers: Collection[int]) -> list[tuple[str, tuple[int, ...]]]:
    """Sentences with what they cite; a mark that stands alone, or in a sentence on where that stands, belongs to the one before."""
    out: list[tuple[str, tuple[int, ...]]] = []
    for start, end in sentences.split(text):
        sentence, cited = _take_marks(text[start:end], numbers)
        if _WORD.search(sentence) and not _ABOUT_SOURCE.match(sentence):
            out.append((sentence, cited))
        elif cited and out:
            out[-1] = (out[-1][0], tuple(dict.fromkeys((*out[-1][1], *cited))))
    return out


def _take_marks(sentence: str, numbers: Collection[int]) -> tuple[str, tuple[int, ...]]:
    """The sentence without its marks, and what they cite. (2) is one only at the end, of a passage that there is, and for want of others."""
    marks = [m for m in _MARK.finditer(sentence) if m[0].lstrip()[0] in "[【"]
    if not marks and (last := _ROUND.search(sentence)) and {int(n) for n in re.findall(r"\d+", last[1])} <= set(numbers):
        marks = [last]
    cited = [int(n) for m in marks for n in re.findall(r"\d+", m[1])]
    for mark in reversed(marks):
        sentence = sentence[: mark.start()] + sentence[mark.end() :]
    sentence = re.sub(r" (?=[.!?]$)", "", " ".join(sentence.split()).removeprefix("- "))
    sentence = _PREAMBLE.sub("", sentence.lstrip(",:; ")).lstrip(",:; ")
    return sentence[:1].upper() + sentence[1:], tuple(dict.fromkeys(cited))


def _checked(sentence: str, cited: tuple[int, ...], passages: Sequence[tuple[int, str]], notes: list[str]) -> tuple[int, ...]:
    """The passages that support a sentence, as cited or anew; none when it must be left out. Says what was done in ``notes``."""
    texts = dict(passages)
    good = tuple(n for n in cited if n in texts and supports(texts[n], sentence))
    if good:
        if len(good) < len(cited):
            notes.append(f"A citation was dropped from: “{_short(sentence)}”")
        return good
    others = [n for n, text in passages if supports(text, sentence)] if says_something(sentence) else []
    if len(others) == 1 or (others and not cited):
        notes.append(f"Cited anew as [{others[0]}]: “{_short(sentence)}”")
        return (others[0],)
    reason = "cites no passage that supports it" if cited else "stands in no passage"
    notes.append(f"Left out, for it {reason}: “{_short(sentence)}”")
    return ()


def _with_marks(sentence: str, cited: Sequence[int]) -> str:
    marks = "".join(f" [{n}]" for n in cited)
    stop = sentence[-1] if sentence[-1] in ".!?。！？" else "."
    return f"{sentence.rstrip('.!?。！？')}{marks}{stop}"


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
