"""Bytes to text: byte order mark, strict UTF-8, UTF-16 by its NULs, a detector for other scripts, alphabets for Latin ones."""

from __future__ import annotations

import codecs
import io
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

SAMPLE = 256 * 1024  # bytes of a large file that are judged at first
TELLING = 32 * 1024  # bytes, of lines that are not plain ASCII, that a detector looks at
_REPLACEMENT = "\ufffd".encode()  # a replacement character that the author wrote
FEW_CONTROLS = 3  # stand in a text too, as the end mark of old systems does
FEW_ERRORS = 0.02  # invalid bytes for each valid character beyond ASCII: below, it is UTF-8 with errors in it
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Encodings of other scripts: here a statistical detector is right, among Latin ones it is not on short texts.
_OTHER_SCRIPTS = frozenset(
    "cp1251 koi8_r koi8_u cp1125 iso8859_5 mac_cyrillic cp866 cp855 iso8859_7 cp1253 mac_greek iso8859_8 cp1255 iso8859_6 cp1256 "
    "cp874 tis_620 iso8859_11 shift_jis cp932 shift_jis_2004 shift_jisx0213 euc_jp euc_jis_2004 euc_jisx0213 euc_kr cp949 "
    "johab gb2312 gbk gb18030 hz big5 big5hkscs cp950".split()
)
_LATIN = ("cp1252", "cp1250", "iso8859_2", "cp1254", "cp1257", "mac_roman", "cp850")  # on equal terms the first is taken
_ALPHABETS = tuple(
    map(
        frozenset,
        ("äöüß", "àâæçéèêëîïôœùûüÿ", "áéíñóúü", "ãáàâçéêíõóôú", "àèéìíòóùú", "åäöé", "æøåéô", "áðéíóúýþæö", "ëïéèöáóú", "çğıöşüâîi̇",
         "ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîșțşţ", "čćđšž", "äöõüšž", "āčēģīķļņšūž", "ąčęėįšųūž",
         "àçèéíïòóúü·"),
    )
)  # fmt: skip
_SIGNS = frozenset("\u00a0’‘‚“”„–—…•·€£¥§°²³½¼¾±×÷µ«»‹›¿¡©®™†‰")
_ODD = re.compile(r"[^\W\d_][^\w\s\x00-\x7f’‘–—…“”„»›·®™]|[^\W\d_A-ZÀ-ÞŁŚŻŹŠČŘĎŤŇĚŽŐŰĞŞİ][A-ZÀ-ÞŁŚŻŹŠČŘĎŤŇĚŽŐŰĞŞİ]")
_USUAL = re.compile("[\t\n\r -~\u00a0-\u024f\u0370-\u06ff\u0900-\u0e7f\u2010-\u203b\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """``replaced``: how many characters U+FFFD stand for bytes that the encoding does not have."""

    text: str
    encoding: str
    replaced: int = 0

    @property
    def binary(self) -> bool:
        """Whether this is no text at all: more than one character in twenty, and more than a few, are control codes."""
        sample = self.text[:SAMPLE]
        return len(_CONTROLS.findall(sample)) > max(FEW_CONTROLS, len(sample) / 20)


def decode(data: bytes) -> Decoded:
    """The text of a whole file; it never fails."""
    encoding = detect(data, whole=True)
    text = data.decode(encoding, "replace")
    replaced = text.count("\ufffd")
    if replaced and encoding.startswith("utf-8"):
        replaced -= data.count(_REPLACEMENT)
    return Decoded(text, shown(encoding), replaced)


def detect(sample: bytes, *, whole: bool) -> str:
    """The encoding of a text that begins with ``sample``; ``whole`` when that is all of it."""
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    if b"\x1b$" in sample and _fits(sample, "iso2022_jp", whole):
        return "iso2022_jp"
    if b"\0" in sample:
        if name := _utf16_by_nuls(sample):
            return name
        sample = sample.replace(b"\0", b"")
    if _fits(sample, "utf-8", whole) or _mostly_utf8(sample):
        return "utf-8"
    return _guess(sample)


def detect_file(path: Path) -> str:
    """The encoding of a large file: by its beginning, then held against all of it when it claims UTF-8."""
    with open(path, "rb") as file:
        sample = file.read(SAMPLE)
        whole = len(sample) < SAMPLE
        encoding = detect(sample, whole=whole)
        if encoding != "utf-8" or whole:
            return encoding
        decoder = codecs.getincrementaldecoder("utf-8")("strict")
        file.seek(0)
        while block := file.read(1 << 20):
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                return detect(block, whole=False)
    return encoding


def replaced_in(path: Path, encoding: str) -> int:
    """How many characters U+FFFD :func:`open_text` puts in the place of bytes that the encoding does not have."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    own = _REPLACEMENT if encoding.startswith("utf-8") else None
    count, tail = 0, b""
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            count += decoder.decode(block).count("\ufffd")
            if own:
                count -= (tail + block).count(own)
                tail = block[-2:]
    return count + decoder.decode(b"", final=True).count("\ufffd")


def open_text(path: Path, encoding: str) -> io.TextIOWrapper:
    """The file as a text stream, line ends as written, NULs still in it."""
    return open(path, encoding=encoding, errors="replace", newline="")


def shown(encoding: str) -> str:
    """The name of an encoding for people."""
    return encoding.removesuffix("-sig").replace("_", "-")


def _fits(data: bytes, encoding: str, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)("strict").decode(data, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _mostly_utf8(data: bytes) -> bool:
    """UTF-8 with a few bytes that are wrong, as a file pasted together has it."""
    text = data.decode("utf-8", "replace")
    beyond = sum(1 for char in text if char > "\x7f")
    wrong = text.count("\ufffd") - data.count(_REPLACEMENT)
    return wrong <= FEW_ERRORS * (beyond - wrong)


def _utf16_by_nuls(sample: bytes) -> str | None:
    """UTF-16 without a mark. Latin: every other byte is NUL; other scripts: only one byte order gives usual characters."""
    head = sample[: min(len(sample), 4096) // 2 * 2]
    pairs = len(head) // 2
    if pairs < 2:
        return None
    even, odd = head[0::2].count(0), head[1::2].count(0)
    for name, here, there in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if here > 0.4 * pairs and there < 0.1 * pairs:
            return name
    if _plain(head.replace(b"\0", b"")):
        return None
    share, name = max((_usual(head, name), name) for name in ("utf-16-le", "utf-16-be"))
    return name if share > 0.95 else None


def _usual(data: bytes, encoding: str) -> float:
    """Share of characters from the blocks that texts are made of."""
    text = data.decode(encoding, "replace")
    return len(_USUAL.findall(text)) / max(1, len(text))


def _plain(data: bytes) -> bool:
    """Whether bytes, taken one by one, look like text: UTF-8, or nearly without control codes."""
    text = data.decode("latin-1")
    return len(_CONTROLS.findall(text)) <= len(text) / 100 and (data.isascii() or _fits(data, "utf-8", False))


def _guess(sample: bytes) -> str:
    from charset_normalizer import from_bytes

    telling = b"\n".join(line for line in sample.splitlines() if not line.isascii())[:TELLING]
    latin = max(_LATIN, key=lambda name: (_likeness(telling, name), -_LATIN.index(name)))
    if _surely(telling, latin):
        return latin
    best = from_bytes(telling).best()
    if best and best.encoding in _OTHER_SCRIPTS and _fits(telling, best.encoding, False):
        return best.encoding
    return latin


def _surely(data: bytes, encoding: str) -> bool:
    """Whether the bytes beyond ASCII stand one by one as letters of one language, or as usual signs.

    Of a sentence or two a detector takes such a byte, with the letter after it, for a Chinese character.
    """
    runs = re.findall(rb"[\x80-\xff]+", data)
    if sum(1 for run in runs if len(run) == 1) <= len(runs) / 2:
        return False
    text = unicodedata.normalize("NFC", data.decode(encoding, "replace"))
    letters, covered, odd = _letters(text)
    return odd == 0 and covered == letters and all(char.isalpha() or char in _SIGNS for char in text if char > "\x7f")


def _likeness(data: bytes, encoding: str) -> float:
    """How well the characters beyond ASCII make words of one language; symbols inside words speak against it."""
    text = unicodedata.normalize("NFC", data.decode(encoding, "replace"))
    _, covered, odd = _letters(text)
    beyond = sum(1 for char in text if char > "\x7f")
    return round((covered - odd) / max(1, beyond), 3)


def _letters(text: str) -> tuple[int, int, int]:
    """(letters beyond ASCII, those of the one language that has most of them, places where no word looks so)."""
    letters = [char for char in text.casefold() if char > "\x7f" and char.isalpha()] + ["ß"] * text.count("ß")
    covered = max(sum(1 for char in letters if char in alphabet) for alphabet in _ALPHABETS) if letters else 0
    return len(letters), covered, len(_ODD.findall(text)) + 2 * text.count("\ufffd")
