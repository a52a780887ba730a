"""What a passage bears out of a sentence: its numbers, dates, identifiers and names, and enough of its words.

Tolerant of form (1,299.99 and 1299.99; 12 June and 2024-06-12; fourteen and 14), strict about values. It knows nothing of
meaning: a sentence that turns a fact round with the same words passes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from hybrid_rag.analysis import normalise

SUPPORT_SHARE = 0.5  # of a sentence's content words that the passage must hold

_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?!\d)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_TOKEN = re.compile(r"\w+(?:[-./]\w+)*")
_PART = re.compile(r"[^\W_]+")
_WORD = re.compile(r"[^\W\d_]{3,}")
_SHOWN = re.compile(r"\w+(?:[.,:/\-]\w+)*")
_WITH_UNIT = re.compile(r"\d+[a-z]{1,3}|\d[A-Z]")  # 5kg, 38h, 2nd, 4K

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_SPELLED = dict(zip(
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen "
    "twenty thirty forty fifty sixty seventy eighty ninety hundred thousand".split(),
    map(str, [*range(2, 21), 30, 40, 50, 60, 70, 80, 90, 100, 1000]), strict=True))  # fmt: skip
_SIGNS = {
    word: forms
    for forms in (("eur", "euro", "€"), ("usd", "dollar", "$"), ("gbp", "pound", "£"), ("percent", "per cent", "%"))
    for word in forms
}
_SIGNS |= {f"{word}s": forms for word, forms in _SIGNS.items() if word.isalpha()}
COMMON = frozenset(
    "the and for are was were has have had that this with from not but can may must will would should which who what when where how its their "
    "they there than then also only any all each per into out about over under between after before during within you your our been being does "
    "did these those such could both once still".split()
)
_ORDINARY = frozenset(
    "the a an in on at for from to of by with and or but if it its this that these those they there their he she you your we our i no yes not all "
    "any each both when while where who what which how as according based after before during also however passage passages document documents "
    "answer customers mr mrs ms dr q a".split()
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a passage holds, in comparable form."""

    folded: str
    words: frozenset[str]
    numbers: frozenset[str]


def supports(passage: str, sentence: str) -> bool:
    """The passage holds every number, identifier and name of the sentence, and half of its content words."""
    held = facts(passage)
    if not all(_holds_number(readings, held) for readings in _numbers(sentence)):
        return False
    if not all(_holds_identifier(i, held) for i in identifiers(sentence)):
        return False
    if not all(_holds_name(name, held) for name in names(sentence)):
        return False
    words = content_words(sentence)
    return not words or sum(_holds_word(w, held) for w in words) >= SUPPORT_SHARE * len(words)


def says_something(sentence: str) -> bool:
    """Whether there is anything in a sentence that a passage could hold: a number, an identifier, a name or a content word."""
    return bool(content_words(sentence) or names(sentence) or identifiers(sentence) or _numbers(sentence))


@lru_cache(maxsize=128)
def facts(passage: str) -> Facts:
    folded = normalise(passage)
    numbers = {reading for readings in _numbers(passage) for reading in readings}
    numbers |= {re.sub(r"\D", "", found) for found in _GROUPED.findall(passage)}
    words = frozenset(_PART.findall(folded))
    numbers |= {number for word, number in _SPELLED.items() if word in words}
    return Facts(folded, words, frozenset(numbers))


def spans_of_support(quote: str, sentence: str) -> tuple[tuple[int, int], ...]:
    """Where words and numbers of the sentence stand in the quote."""
    wanted = {_stem(w) for w in content_words(sentence)}
    numbers = {reading for readings in _numbers(sentence) for reading in readings}
    out = []
    for match in _SHOWN.finditer(quote):
        word = normalise(match[0])
        own = {reading for readings in _numbers(word) for reading in readings}
        if own & numbers or wanted & {_stem(w) for w in _WORD.findall(word)}:
            out.append(match.span())
    return tuple(out)


def content_words(sentence: str) -> list[str]:
    """Its words of three letters and more, folded, without those that every sentence has, spelled numbers and months."""
    return [w for w in _WORD.findall(normalise(sentence)) if w not in COMMON and w not in _SPELLED and w not in MONTHS]


# ---------------------------------------------------------------- numbers and dates


def _numbers(text: str) -> list[frozenset[str]]:
    """For each number of a text its possible readings: 1.234,56 and 1,234.56 are 1234.56; 1,234 may be 1234 or 1.234."""
    out = [frozenset(_readings(found)) for found in _NUMBER.findall(text)]
    return out + [
        frozenset([_SPELLED[word]]) for word in _PART.findall(text.casefold()) if word in _SPELLED and word not in ("hundred", "thousand")
    ]


def _readings(found: str) -> set[str]:
    out = (
        {_plain(found.replace(",", "")), _plain(found.replace(".", "").replace(",", "."))} if re.search(r"[.,]", found) else {_plain(found)}
    )
    if found.count(",") == 1:
        out.add(_plain(found.replace(",", ".") if "." not in found else found.replace(",", "")))
    return out


def _plain(number: str) -> str:
    """Without leading zeros, and without zeros at the end of a fraction; more than one point is no fraction."""
    if number.count(".") > 1:
        return number
    whole, _, fraction = number.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


def _holds_number(readings: frozenset[str], held: Facts) -> bool:
    if readings & held.numbers:
        return True
    return any(r.isdigit() and 1 <= int(r) <= 12 and MONTHS[int(r) - 1] in held.words for r in readings)


# ---------------------------------------------------------------- identifiers, names, words


def identifiers(sentence: str) -> list[str]:
    """Words that mix letters and digits, folded: WC-2024-00317, a002; not 30-day, 5kg or 2nd."""
    return [normalise(token) for token in _TOKEN.findall(sentence) if _is_identifier(token)]


def _is_identifier(token: str) -> bool:
    if not (re.search(r"\d", token) and re.search(r"[^\W\d_]", token)) or _WITH_UNIT.fullmatch(token):
        return False
    parts = re.split(r"[-./]", token)
    mixed = any(re.search(r"\d", p) and re.search(r"[^\W\d_]", p) and not _WITH_UNIT.fullmatch(p) for p in parts)
    return mixed or any(p.isalpha() and p.isupper() for p in parts)


def _holds_identifier(identifier: str, held: Facts) -> bool:
    return re.search(rf"(?<![^\W_]){re.escape(identifier)}(?![^\W_])", held.folded) is not None


def names(sentence: str) -> list[str]:
    """Capitalised words, without the first of the sentence unless it is written in capitals."""
    out = []
    for place, match in enumerate(re.finditer(r"[^\W\d_][\w'’]*", sentence)):
        word = re.sub(r"['’]s?$", "", match[0])
        if not word[0].isupper() or re.search(r"\d", word) or normalise(word) in _ORDINARY:
            continue
        month = normalise(word) in MONTHS and word != "May"
        if place or month or (word.isupper() and len(word) > 1):
            out.append(normalise(word))
    return out


def _holds_name(name: str, held: Facts) -> bool:
    if name in held.words or any(form in held.folded for form in _SIGNS.get(name, ())):
        return True
    if name in MONTHS:
        return str(MONTHS.index(name) + 1) in held.numbers or name[:3] in held.words
    bare = re.sub(r"(?:e[snrm]|[senr])$", "", name) if len(name) > 4 else name
    return any(w.startswith(bare) and len(w) - len(bare) <= 2 for w in held.words) if len(bare) > 3 else False


def _holds_word(word: str, held: Facts) -> bool:
    return _stem(word) in held.folded or any(form in held.folded for form in _SIGNS.get(word, ()))


def _stem(word: str) -> str:
    if len(word) > 5:
        return word[: max(4, len(word) - 3)]
    return word.removesuffix("s") if len(word) > 3 else word
