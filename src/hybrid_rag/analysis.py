"""Text to terms: the one analyser of the keyword leg, the same for documents and queries.

Unicode NFKC, casefold, accents stripped. A word with inner ``. _ - / @ : + ' &`` gives the whole token and its
stemmed parts, so that ``rule-A002``, ``A002``, ``1.2.3``, an e-mail address and a path are all found; one with hyphens
also gives the word without them (``e-mail`` and ``email``, ``HP-1000`` and ``HP1000`` meet). Runs of Chinese, Japanese
and Korean characters give single characters and bigrams. No term holds white space.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hybrid_rag.stopwords import STOPWORDS

STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "eu": "basque",
    "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "nl": "dutch", "no": "norwegian", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip

_CJK = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"([{_CJK}]+)|([^\W{_CJK}]+(?:[._\-/@:+'’&]+[^\W{_CJK}]+)*(?:\+\+|\#)?)")
_JOINER = re.compile(r"[._\-/@:+'’&#]+")
_PATH = re.compile(r"[^\W_](?:[^/@]*[^\W_])?")  # the pieces of a path or an e-mail address
_ACCENTS = re.compile(r"(?<!и)[\u0300-\u036f]+|(?<=и)[\u0300-\u0305\u0307-\u036f]+")  # й is a letter of its own
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")  # soft hyphen, zero-width space and joiner, byte order mark
_PHRASE = re.compile(r'(?<!\w)["“”„«»]([^"“”„«»]+)["“”„«»](?!\w)')  # 27" is inches, no quotation mark
IDENTIFIER_BOOST = 3  # of an identifier in a query: it is what is asked for
_LONGEST_TERM = 200  # characters; longer tokens are cut (tantivy refuses 64 kB terms)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_LETTERS = re.compile(r"[^\W\d_]+")

ANALYSER_VERSION = 3  # raise when the terms of a text change: keyword indexes are then rebuilt


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query in terms. ``terms``: (term, boost), a repeated word counts as often. ``phrases`` must occur, as sequences.

    ``quoted``: the same phrases as patterns for :func:`holds`, for terms are stems and "exact words" are not.
    """

    terms: tuple[tuple[str, float], ...]
    phrases: tuple[tuple[str, ...], ...] = ()
    quoted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms)


class Analyzer:
    """Turns texts and queries into terms for one language. ``language``: ISO 639-1, or "none" for no stemming."""

    def __init__(self, language: str = "en") -> None:
        self.language = language
        self.fingerprint = f"{ANALYSER_VERSION}:{language if language in STEMMERS else 'none'}"
        self._stopwords = STOPWORDS.get(language, frozenset())
        self._stem = _stemmer(STEMMERS.get(language))

    def terms(self, text: str) -> list[str]:
        """Terms of a document's text, in order, repeated as they occur."""
        out: list[str] = []
        for cjk, word in _TOKEN.findall(normalise(text)):
            if cjk:
                out.extend(_cjk_terms(cjk))
            else:
                self._add_word(word, out)
        return out

    def query(self, text: str) -> LexicalQuery:
        """Terms of a query: function words dropped (unless there is nothing else), quoted phrases kept as phrases."""
        quoted = [phrase for phrase in _PHRASE.findall(text) if _TOKEN.search(normalise(phrase))]
        counts: Counter[str] = Counter()
        spare: Counter[str] = Counter()
        for cjk, word in _TOKEN.findall(normalise(text)):
            if cjk:
                counts.update(_cjk_terms(cjk) if len(cjk) == 1 else (t for t in _cjk_terms(cjk) if len(t) > 1))
                continue
            found: list[str] = []
            self._add_word(word, found)
            (spare if word in self._stopwords else counts).update(found)
            if is_identifier(word):
                counts[found[0]] += IDENTIFIER_BOOST - 1
        terms = tuple((term, float(n)) for term, n in (counts or spare).items())
        return LexicalQuery(terms, tuple(tuple(self.terms(phrase)) for phrase in quoted), tuple(map(_pattern, quoted)))

    def _add_word(self, word: str, out: list[str]) -> None:
        word = word[:_LONGEST_TERM]
        if word.isalnum():
            out.append(self._stem(word))
            return
        word = word.replace("’", "'")
        parts = [part for part in _JOINER.split(word) if part]
        out.append(word)
        if "/" in word or "@" in word:
            out.extend(piece for piece in _PATH.findall(word) if not piece.isalnum())
        if "-" in word and len(parts) > 1 and (joined := word.replace("-", "")).isalnum():
            out.append(self._stem(joined))
        out.extend(map(self._stem, parts))


def unquoted(text: str) -> str:
    """A query without the quotation marks that make its words a condition."""
    return _PHRASE.sub(r"\1", text)


def is_identifier(word: str) -> bool:
    """Does a normalised word name something (``wc-2024-00318``, ``a002``, ``1.2.3``, ``0010``) and give no quantity (``27.5``)?"""
    if len(word) < 3 or not any(c.isdigit() for c in word):
        return False
    return word[0] == "0" or not word.replace(".", "", 1).isdigit()


def holds(text: str, patterns: Iterable[str]) -> bool:
    """Does a text hold every quoted phrase, word for word, whatever its case, accents and the signs between the words?"""
    plain = normalise(text)
    return all(re.search(pattern, plain) for pattern in patterns)


def _pattern(phrase: str) -> str:
    """A regular expression for the words of a phrase in a normalised text."""
    out = ""
    before = ""
    for cjk, word in _TOKEN.findall(normalise(phrase)):
        out += (r"\W*" if cjk or before == "cjk" else r"\W+") if before else "" if cjk else r"(?<!\w)"
        out += re.escape(cjk or word)
        before = "cjk" if cjk else "word"
    return out + (r"(?!\w)" if before == "word" else "")


@lru_cache(maxsize=4096)
def _normalise_short(text: str) -> str:
    return _normalise(text)


def normalise(text: str) -> str:
    """NFKC, casefold; accents, invisible characters and thousands commas off; lone surrogates become a question mark."""
    text = _THOUSANDS.sub("", text)
    if text.isascii():
        return text.lower()
    return _normalise_short(text) if len(text) < 200 else _normalise(text)


def _normalise(text: str) -> str:
    clean = _INVISIBLE.sub("", text.encode("utf-8", "replace").decode("utf-8"))
    folded = unicodedata.normalize("NFKC", clean).casefold()
    stripped = _ACCENTS.sub("", unicodedata.normalize("NFD", folded))
    return unicodedata.normalize("NFC", stripped)


def _cjk_terms(run: str) -> list[str]:
    """Characters and bigrams in order of their start: 東京都 -> 東 東京 京 京都 都."""
    out: list[str] = []
    for i, character in enumerate(run):
        out.append(character)
        if i + 1 < len(run):
            out.append(run[i : i + 2])
    return out


def _stemmer(name: str | None):
    if name is None:
        return lambda word: word
    import snowballstemmer

    stem = snowballstemmer.stemmer(name).stemWord
    lock = threading.Lock()  # the stemmer keeps its word in itself: two threads would give each other wrong stems

    @lru_cache(maxsize=200_000)
    def cached(word: str) -> str:
        if not word.isalpha():
            return word
        with lock:
            return stem(word)

    return cached


SCRIPTS = {"ru": "а-яё", "el": "α-ω", "ar": "\u0620-\u064a", "hi": "\u0900-\u0963", "hy": "ա-և", "ta": "\u0b80-\u0bff"}
_SCRIPTS = {language: re.compile(f"[{characters}]") for language, characters in SCRIPTS.items()}


def detect_language(texts: str | Iterable[str]) -> str:
    """The language (ISO 639-1) whose function words, or whose script, is most frequent; "en" when nothing speaks for another.

    A cheap vote over a few languages: good for choosing a stemmer, no judgement on single sentences.
    """
    counts: Counter[str] = Counter()
    total = 0
    for text in [texts] if isinstance(texts, str) else texts:
        words = Counter(_LETTERS.findall(normalise(text)))
        total += sum(words.values())
        for language, script in _SCRIPTS.items():
            counts[language] += sum(n for word, n in words.items() if script.match(word))
        for language, stopwords in STOPWORDS.items():
            counts[language] += sum(n for word, n in words.items() if word in stopwords)
    if not total:
        return "en"
    language, best = max(counts.items(), key=lambda item: (item[1], item[0] == "en"))
    return language if best > 1.1 * counts["en"] and best > 0.1 * total else "en"


def collection_language(texts: Sequence[str], known: str) -> str:
    """The language of a collection by a sample of its texts; the known one ("": none yet) stays unless both halves speak for another."""
    if not texts:
        return known
    halves = {detect_language(texts[i::2] or texts) for i in (0, 1)}
    return detect_language(texts) if not known or len(halves) == 1 else known
