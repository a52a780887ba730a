"""Follow-up questions by rules (English): which depend on the question before, and what they mean when they stand alone.

Only what the last question named is carried over, and only into a question that names nothing itself; a question that
the rules do not understand is left as it is. They know no grammar beyond pronouns and a few openings.
"""

from __future__ import annotations

import re

from hybrid_rag.stopwords import STOPWORDS

MOST_WORDS = 6  # carried over from a question that names nothing

_OPENING = re.compile(r"^\s*(?:(?:and|but|or|so|ok|okay)\b[\s,]*)?(?:(?:what|how) about\b\s*)?", re.IGNORECASE)
_BARE = re.compile(
    r"^\s*(?:(?:and|but|or|so)\s+)?(?:why|when|where|who|since when|until when|how (?:much|many|long|often|far|so))\s*\?*\s*$",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(r"^\s*(?:(?:and|but|or|so)\b|(?:what|how) about\b)", re.IGNORECASE)
_PRONOUN = re.compile(
    r"\b(?P<possessive>its|their|his)\b|\b(?P<object>it|they|them|he|him|she)\b|\b(?P<pointing>(?:this|that|these|those) ones?|this|these|those|her)\b",
    re.IGNORECASE,
)
_NO_PRONOUN = re.compile(  # "it" that stands for nothing
    r"\bit (?:takes?|took)\b|\b(?:does|did|will|would|can|could) it (?:take|cost)\b(?=.*\bto\b)|\b(?:is|was) it (?:possible|allowed|true|necessary|worth|ok|okay)\b"
    r"|\bit (?:is|was) (?:possible|allowed|true|necessary)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“]([^\"”]+)[\"”]")
_NAME = re.compile(r"\b(?:[A-Z][\w'’&-]*|[A-Za-z]*\d(?:[\w./-]*\w)?)(?:\s+(?:[A-Z][\w'’&-]*|[A-Za-z]*\d(?:[\w./-]*\w)?))*")
_WORD = re.compile(r"[^\W_][\w'’-]*")
_OPENERS = frozenset(
    "what which who whom whose when where why how is are was were do does did can could will would should shall may might must has have had the a an in on "
    "for and but or so within from until by at of to with list show tell give find name count please i there if".split()
)
_AUXILIARIES = frozenset("is are was were do does did can could will would should shall may might must has have had".split())
_WHAT_IS = re.compile(r"^\s*(?:(?:and|but|or|so)\s+)?(?:what|which|who)\s+(?:is|are|was|were)\s*$", re.IGNORECASE)
_ENDING = re.compile(r"\b(in|on|for|from|to|of|at|by|with) (?:[^\s?]+ ){0,2}[^\s?]+\s*\?*\s*$", re.IGNORECASE)
_LONE = re.compile(r"^(?:(?:in|on|for|from|to|of|at|by|with|the|a|an|only|just)\s+)*(?P<name>.+?)\s*\??$", re.IGNORECASE)


def is_follow_up(question: str) -> bool:
    """Whether a question leans on the one before: it opens in the middle, or says "it" and the like."""
    return any(form.search(question) for form in (_BARE, _ELLIPSIS)) or _pronoun(question) is not None


def names(question: str) -> list[str]:
    """What a question names: quoted words, identifiers and numbers, capitalised words (not its first, when that only opens it)."""
    quoted = [m[1].strip() for m in _QUOTED.finditer(question)]
    rest = _QUOTED.sub(" ", question)
    start = len(rest) - len(rest.lstrip())
    found = []
    for match in _NAME.finditer(rest):
        words = match[0].split()
        at = match.start()
        opens = at == start or rest[:at].rstrip()[-1:] in (".", "?", "!", ":")
        while words and words[0].casefold() in _OPENERS and (opens or words[0] in ("I", "A")):
            words, opens = words[1:], True
        name = re.sub(r"['’]s?$", "", " ".join(words))
        if name and name != "I":
            found.append(name)
    return list(dict.fromkeys((*quoted, *found)))


def stand_alone(question: str, last: str) -> str:
    """The question as it can be understood without the one before, ``last``; itself when the rules find nothing to do.

    Both as ordinary text. A question with names of its own is left alone, but for "and in Hamburg?" after a question
    that named one thing of that kind.
    """
    own, before = names(question), names(last)
    if not is_follow_up(question):
        return question
    if exchanged := _other_end(question, last):
        return exchanged
    if own:
        return _exchanged(question, own, last, before)
    if not before or _BARE.match(question):
        return _with_words(question, last)
    if (pronoun := _pronoun(question)) and len(before) == 1:
        return _replaced(question, pronoun, before[0])
    rest = (question if pronoun else _OPENING.sub("", question)).rstrip(" ?")
    noun = re.fullmatch(r"(?:the )?((?:[\w-]+ ){0,2}[\w-]+)", rest)
    if noun and not pronoun and len(before) == 1 and rest.partition(" ")[0].casefold() not in _OPENERS - {"the"}:
        return f"What is the {noun[1]} of {before[0]}?"
    return f"{_capital(rest)} ({', '.join(before)})?"


def _pronoun(question: str) -> re.Match[str] | None:
    without = _NO_PRONOUN.sub(lambda m: " " * len(m[0]), question)
    return _PRONOUN.search(_QUOTED.sub(lambda m: " " * len(m[0]), without))


def _replaced(question: str, pronoun: re.Match[str], subject: str) -> str:
    """The subject in the place of the pronoun: "its price" at the end becomes "the price of X"."""
    before, after = question[: pronoun.start()], question[pronoun.end() :]
    if pronoun["pointing"]:
        return f"{_capital(question.rstrip(' ?'))} ({subject})?"
    if not pronoun["possessive"]:
        return _whole(f"{before}{subject}{after}")
    noun = re.fullmatch(r"\s+((?:[\w-]+\s+){0,2}[\w-]+)\s*\??\s*", after)
    verb = before.split()[-1].casefold() if before.split() else ""
    if not noun or (verb in _AUXILIARIES and not _WHAT_IS.match(before)):
        return _whole(f"{before}{subject}'s{after}")
    if not _OPENING.sub("", before).strip():
        return f"What is the {noun[1]} of {subject}?"
    return _whole(f"{before}the {noun[1]} of {subject}?")


def _other_end(question: str, last: str) -> str:
    """ "And on lenses?" after a question that ends "… on cameras?": its end exchanged; "" when that is not the form."""
    new = _ENDING.fullmatch(_OPENING.sub("", question)) if _ELLIPSIS.match(question) else None
    old = list(_ENDING.finditer(last)) if new else []
    return (
        f"{last[: old[0].start()]}{new[0].strip().rstrip('?').rstrip()}?"
        if new and len(old) == 1 and old[0][1].casefold() == new[1].casefold()
        else ""
    )


def _exchanged(question: str, own: list[str], last: str, before: list[str]) -> str:
    """ "And in Hamburg?": the last question with Hamburg in the place of the one thing of that kind it named."""
    rest = _LONE.match(_OPENING.sub("", question).strip())
    if len(own) != 1 or rest is None or rest["name"].strip(' "“”') != own[0] or _OPENING.match(question)[0].strip() == "":  # type: ignore[index]
        return question
    alike = [name for name in before if _kind(name) == _kind(own[0])]
    return last.replace(alike[0], own[0]) if len(alike) == 1 and alike[0] != own[0] else question


def _kind(name: str) -> str:
    digits, letters = any(c.isdigit() for c in name), any(c.isalpha() for c in name)
    return "identifier" if digits and letters and " " not in name else "name" if letters else "number"


def _with_words(question: str, last: str) -> str:
    """Where the last question names nothing: its own content words, behind the question."""
    words = [w for w in _WORD.findall(last) if w.casefold() not in STOPWORDS["en"] and w.casefold() not in _OPENERS and len(w) > 2]
    fresh = [w for w in dict.fromkeys(words) if w.casefold() not in question.casefold()]
    return f"{_capital(_OPENING.sub('', question).rstrip(' ?'))} ({' '.join(fresh[:MOST_WORDS])})?" if fresh else question


def _whole(text: str) -> str:
    return _capital(_OPENING.sub("", text)) if re.match(r"\s*(?:and|but|or|so)\b", text, re.IGNORECASE) else text


def _capital(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:]
