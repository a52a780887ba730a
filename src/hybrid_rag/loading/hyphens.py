"""Words broken at line ends: "cli-/mate" is climate, "price-/determining" keeps its hyphen."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from hybrid_rag.errors import ModelError

SHORTEST_PART = 3  # letters of a word that may be a part of a compound
_ENDINGS = frozenset("able ers ful ing ings ism ist ity ive less ment ments ness ous tion tions ward".split())
_BROKEN = re.compile(r"([^\W_]+)[-\u00ad\u2010]\n[^\S\n]*([^\W_]+)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_COMPOUND = re.compile(r"[^\W\d_]+-[^\W\d_]+")


class Hyphens:
    """Joins the broken words of a document by what the document itself writes elsewhere, then by known English words."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._words: Counter[str] = Counter()
        self._compounds: Counter[str] = Counter()
        for text in texts:
            self._words.update(map(str.casefold, _WORD.findall(_BROKEN.sub(" ", text))))
            self._compounds.update(map(str.casefold, _COMPOUND.findall(text)))

    def join(self, text: str) -> str:
        """The text with broken words joined; the rest of the line that held the second part goes on."""
        return _BROKEN.sub(lambda match: match[1] + ("-" if self.keeps(match[1], match[2]) else "") + match[2], text)

    def keeps(self, first: str, second: str) -> bool:
        """Whether the hyphen belongs to the word. In doubt it does not: most breaks are made by typesetting."""
        one, two = first.casefold(), second.casefold()
        if self._compounds[f"{one}-{two}"] or self._words[one + two]:
            return self._compounds[f"{one}-{two}"] > self._words[one + two]
        if not (first.isalpha() and second.isalpha()) or (second[0].isupper() and not first.isupper()):
            return True
        if one + two in known_words():
            return False
        return self._known(one) and self._known(two) and two not in _ENDINGS

    def _known(self, word: str) -> bool:
        return len(word) >= SHORTEST_PART and (word in known_words() or self._words[word] > 1)


@cache
def known_words() -> frozenset[str]:
    """Frequent English words, from the vocabulary of the bundled model; none when it is missing."""
    from hybrid_rag.models import TOKENIZER_FILE, bundled

    try:
        vocabulary = json.loads((bundled("bge_small_en") / TOKENIZER_FILE).read_text(encoding="utf-8"))["model"]["vocab"]
    except ModelError:
        return frozenset()
    return frozenset(word for word in vocabulary if word.isalpha())
