"""The words of a table question: tokens with their stems, and the words that carry no meaning of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from hybrid_rag.analysis import Analyzer, normalise

MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"]
NUMBER_WORDS = {
    w: i
    for i, w in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100}
ORDINALS = {
    w: i for i, w in enumerate("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), start=1)
}

# Words that no condition can hang on. "not", "only", "other", "more", "before" and the like are none of them.
FUNCTION_WORDS = frozenset(
    "a about am an any are as at be been being but can could did do does doing done each few for from further had has have having he her "
    "here hers him his how i if in into is it its itself just may me might my of on once or our out own shall she should so some such that "
    "the their theirs them there these they this those through to us very was we were what when where which while who whom whose will with "
    "would you your yours s t".split()
)
NEUTRAL_WORDS = frozenset(
    "show list give tell find get display name please many much number count record row entry table data file chart exist exactly "
    "altogether overall currently ever kind value available called named belong placed came come coming went filed made make received "
    "receive submitted recorded registered reported listed happened occurred took take taken given several various according also "
    "include included including represented used use played play participate participated compete competed appear appeared hold held "
    "feature featured score scored".split()
)
IRREGULAR = {
    "pos": "position", "pts": "points", "qty": "quantity", "amt": "amount", "avg": "average",
    "won": "win", "wins": "win", "lost": "lose", "losses": "lose", "loss": "lose", "drew": "draw", "drawn": "draw", "sunk": "sink",
    "sank": "sink", "built": "build", "held": "hold", "sold": "sell", "spent": "spend", "left": "leave", "wrote": "write",
    "written": "write", "born": "birth", "died": "death", "women": "woman", "men": "man", "people": "person", "cities": "city",
    "countries": "country", "companys": "compani", "began": "begin", "begun": "begin", "seen": "see", "saw": "see",
}  # fmt: skip
_TOKEN = re.compile(r"(?:[^\W\d_]\.){2,}|[^\W_]+(?:[-./:@&'’_–][^\W_]+)*|[$€£%#]")
_SPLIT = re.compile(r"(?<=[^\W\d_])[-–/&](?=[^\W\d_])")  # "highest-grossing" is two words, "WC-2024" is one
_stem = Analyzer("en").terms


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question: as written, folded, stemmed."""

    text: str
    plain: str
    stem: str

    @property
    def number(self) -> float | None:
        """Its value when it is a number in digits or a small one in letters."""
        bare = re.sub(r"(?<=\d)(?:st|nd|rd|th)$", "", self.plain)
        if re.fullmatch(r"\d+(?:\.\d+)?", bare):
            return float(bare)
        return float(NUMBER_WORDS[self.plain]) if self.plain in NUMBER_WORDS else None

    @property
    def ordinal(self) -> int | None:
        """1 for "first" or "1st"."""
        if match := re.fullmatch(r"(\d+)(?:st|nd|rd|th)", self.plain):
            return int(match.group(1))
        return ORDINALS.get(self.plain)


def words_of(text: str) -> list[Word]:
    """The words; thousands separators are taken out of numbers, and the 's of a possessive is left out."""
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    return [word for found in _TOKEN.findall(plain) for piece in _SPLIT.split(found) for word in _word(piece)]


@lru_cache(maxsize=50_000)
def _word(text: str) -> tuple[Word, ...]:
    bare = re.sub(r"['’]s$", "", text)
    if re.fullmatch(r"(?:[^\W\d_]\.)+", bare):
        bare = bare.replace(".", "")  # "U.S."
    plain = normalise(bare).replace("’", "'").replace("–", "-")
    return (Word(bare, plain, stem(plain)),) if plain else ()


@lru_cache(maxsize=50_000)
def stem(text: str) -> str:
    plain = normalise(text)
    plain = IRREGULAR.get(plain, plain)
    found = _stem(plain)
    return found[0] if found else plain


def stems(label: str) -> tuple[str, ...]:
    """Stems of a column's or table's name: "unit_price" and "UnitPrice" give unit, price."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label).replace("#", " number ").replace("%", " percentage ")
    parted = re.sub(r"\b(?:[^\W\d_]\.){2,}", lambda m: m.group().replace(".", ""), parted)
    return tuple(stem(w) for w in re.findall(r"[^\W_]+", parted))


FILLER_STEMS = frozenset(stem(w) for w in NEUTRAL_WORDS)


def is_filler(word: Word) -> bool:
    """A word that adds nothing: a function word, or a neutral one like "listed"."""
    return (
        word.plain in FUNCTION_WORDS or word.plain in NEUTRAL_WORDS or word.stem in FILLER_STEMS or word.plain in ("$", "€", "£", "%", "#")
    )
