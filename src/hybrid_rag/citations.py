"""Citations checked by code: [n] exists, and the numbers, dates and names of the sentence stand in the cited passage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid_rag import sentences
from hybrid_rag.analysis import normalise

MARK = re.compile(r"\s*\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")
_NUMBER = re.compile(r"\d+(?:[.,:/\-]\d+)*")
_NAME = re.compile(r"\b(?:[A-Z][\w'’&-]*[A-Za-z0-9]|[A-Z]{2,})\b")
_IDENTIFIER = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w]+(?:-[\w]+)*\b")
_WORD = re.compile(r"[^\W_]{3,}")
_LINK = re.compile(r"!?\[([^\]]*)\]\((?:[^()\s]|\([^)]*\))*\)|<?https?://\S+>?")
MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"]
_ORDINARY = frozenset(
    ["The", "A", "An", "In", "On", "At", "For", "From", "To", "Of", "By", "With", "And", "Or", "But", "If", "It", "Its", "This", "That", "These", "Those", "They", "There", "Their", "He", "She", "You", "Your", "We", "Our", "I", "No", "Yes", "Not", "All", "Any", "Each", "Both", "When", "While", "Where", "Who", "What", "Which", "How", "As", "According", "Based", "After", "Before", "During", "Also", "However", "Passage", "Document", "Answer", "Customers"]
)
DONT_KNOW = re.compile(r"^\W*(?:i (?:do not|don['’]?t) know|i am not sure|not (?:mentioned|stated) in)\b", re.IGNORECASE)
SUPPORT_SHARE = 0.5  # of a sentence's content words that the passage must hold


@dataclass(frozen=True, slots=True)
class Checked:
    """A generated answer after the check. ``sentences``: (text, numbers of the passages that support it)."""

    text: str
    sentences: tuple[tuple[str, tuple[int, ...]], ...]
    notes: tuple[str, ...]
    abstained: bool = False


def check(answer: str, passages: Sequence[tuple[int, str]]) -> Checked:
    """Hold an answer against its passages, (n, text) each.

    A sentence whose citation fails is cited anew when exactly one passage supports it, else dropped. An answer that
    says it does not know is an abstention, whatever it cites.
    """
    plain = strip_links(answer).strip()
    if not plain or DONT_KNOW.match(plain):
        return Checked("", (), (), abstained=True)
    texts = dict(passages)
    kept: list[tuple[str, tuple[int, ...]]] = []
    notes: list[str] = []
    for start, end in sentences.split(_marks_inside(plain)):
        piece = _marks_inside(plain)[start:end]
        sentence, cited = _take_marks(piece)
        if not sentence or not _WORD.search(sentence):
            continue
        good = tuple(n for n in cited if n in texts and supports(texts[n], sentence))
        if not good:
            others = [n for n, text in texts.items() if supports(text, sentence)]
            if len(others) == 1 or (others and not cited):
                good = (others[0],)
                notes.append(f"Cited anew as [{others[0]}]: “{_short(sentence)}”")
            else:
                reason = "cites no passage that supports it" if cited else "stands in no passage"
                notes.append(f"Left out, for it {reason}: “{_short(sentence)}”")
                continue
        elif len(good) < len(cited):
            notes.append(f"A citation was dropped from: “{_short(sentence)}”")
        kept.append((sentence, good))
    text = " ".join(f"{_before_stop(sentence, good)}" for sentence, good in kept)
    return Checked(text, tuple(kept), tuple(notes))


def supports(passage: str, sentence: str) -> bool:
    """The passage holds every number and identifier of the sentence, most of its names, and half of its content words."""
    known = _numbers(passage)
    folded = normalise(passage)
    if not all(number in known or _in_words(number, folded) for number in _numbers(sentence)):
        return False
    if any(normalise(i) not in folded for i in _IDENTIFIER.findall(sentence)):
        return False
    names = [n for n in _names(sentence) if n not in _ORDINARY]
    if names and sum(normalise(n) in folded for n in names) < len(names):
        return False
    words = [w for w in _WORD.findall(normalise(sentence)) if w not in _COMMON]
    return not words or sum(_stem(w) in folded for w in words) >= SUPPORT_SHARE * len(words)


_COMMON = frozenset(
    ["the", "and", "for", "are", "was", "were", "has", "have", "had", "that", "this", "with", "from", "not", "but", "can", "may", "must", "will", "would", "should", "which", "who", "what", "when", "where", "how", "its", "their", "they", "there", "than", "then", "also", "only", "any", "all", "each", "per", "into", "out", "about", "over", "under", "between", "after", "before", "during", "within", "you", "your", "our", "been", "being", "does", "did"]
)
_SPELLED = {str(i): w for i, w in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"])}


def strip_links(text: str) -> str:
    """Links and images of the model's become their text; citation marks stay."""
    return _LINK.sub(lambda m: m[1] or "", text)


def spans_of_support(quote: str, sentence: str) -> tuple[tuple[int, int], ...]:
    """Where words and numbers of the sentence stand in the quote."""
    wanted = {_stem(w) for w in _WORD.findall(normalise(sentence)) if w not in _COMMON} | _numbers(sentence)
    out = []
    for match in re.finditer(r"\w+(?:[.,:/\-]\w+)*", quote):
        word = normalise(match[0])
        if word in wanted or _stem(word) in wanted or _numbers(word) & wanted:
            out.append(match.span())
    return tuple(out)


def _numbers(text: str) -> set[str]:
    """Numbers in one form: 1,299.99 and 1299.99 are the same, 12 and 12.0 too; dates give their parts."""
    out: set[str] = set()
    for found in _NUMBER.findall(text):
        plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", found)
        for part in re.split(r"[:/\-,]", plain):
            if part and part.count(".") <= 1:
                whole, _, fraction = part.partition(".")
                fraction = fraction.rstrip("0")
                out.add((whole.lstrip("0") or "0") + (f".{fraction}" if fraction else ""))
            elif part:
                out.add(part)
    return out


def _in_words(number: str, folded: str) -> bool:
    """A small number that the passage spells, or a month that it names."""
    if number in _SPELLED and re.search(rf"\b{_SPELLED[number]}\b", folded):
        return True
    return number.isdigit() and 1 <= int(number) <= 12 and MONTHS[int(number) - 1] in folded


def _names(sentence: str) -> list[str]:
    """Capitalised words that do not merely begin the sentence."""
    out = []
    for match in _NAME.finditer(sentence):
        first = not sentence[: match.start()].strip(" \"'“‘([*_-")
        if not first or (match[0].isupper() and len(match[0]) > 1):
            out.append(match[0].removesuffix("'s").removesuffix("’s"))
    return out


def _stem(word: str) -> str:
    return word[: max(4, len(word) - 3)] if len(word) > 5 else word


def _marks_inside(text: str) -> str:
    """Citation marks moved before the full stop, so that they stay with their sentence."""
    return re.sub(r"([.!?])((?:\s*\[\d[\d\s,;]*\])+)", lambda m: f"{m[2]}{m[1]}", text)


def _take_marks(sentence: str) -> tuple[str, tuple[int, ...]]:
    cited = [int(n) for group in MARK.findall(sentence) for n in re.split(r"[,;]", group)]
    return " ".join(MARK.sub("", sentence).split()), tuple(dict.fromkeys(cited))


def _before_stop(sentence: str, cited: Sequence[int]) -> str:
    marks = "".join(f" [{n}]" for n in cited)
    stop = sentence[-1] if sentence[-1] in ".!?" else "."
    return f"{sentence.rstrip('.!?')}{marks}{stop}"


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "…"
