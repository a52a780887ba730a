"""Encodings by their bytes alone, for texts of one or two sentences."""

from __future__ import annotations

import pytest

from hybrid_rag.loading.encoding import decode

TEXTS = {
    "ja": "これは日本語の文章です。東京は日本の首都であり、世界最大の都市の一つです。価格は千円です。",
    "zh": "这是一个中文文档。北京是中华人民共和国的首都,也是全国的政治和文化中心。价格是一千元。",
    "ko": "이것은 한국어 문서입니다. 서울은 대한민국의 수도이며 정치와 문화의 중심지입니다.",
    "ru": "Это документ на русском языке. Москва является столицей России и крупнейшим городом страны.",
    "el": "Αυτό είναι ένα ελληνικό κείμενο. Η Αθήνα είναι η πρωτεύουσα της Ελλάδας.",
    "pl": "To jest dokument w języku polskim. Łódź i Kraków są dużymi miastami. Żółta gęś.",
    "cs": "Toto je český dokument. Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "tr": "Bu bir Türkçe belgedir. İstanbul en büyük şehirdir. Çağdaş şiir ve ışık.",
    "de": "Größe und Übermaß: Die Straße führt über die Brücke. Preis 5 €.",
    "fr": "Café crème, à côté de l’école. Où est la forêt ? Ça coûte 5 €.",
    "short": "Café;1.234,56\n",
}
CASES = [
    *((language, "utf-16-le") for language in TEXTS),
    *((language, "utf-16-be") for language in TEXTS),
    ("ja", "shift_jis"), ("ja", "euc_jp"), ("ja", "iso2022_jp"), ("zh", "gb18030"), ("ko", "euc_kr"), ("ru", "cp1251"), ("ru", "koi8_r"),
    ("el", "cp1253"), ("pl", "cp1250"), ("pl", "iso8859_2"), ("cs", "cp1250"), ("tr", "cp1254"), ("de", "cp1252"), ("de", "mac_roman"),
    ("fr", "cp1252"), ("short", "cp1252"), ("short", "utf-8"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "encoding"), CASES)
def test_texts_come_back(language: str, encoding: str) -> None:
    decoded = decode(TEXTS[language].encode(encoding))
    assert decoded.text == TEXTS[language]
    assert decoded.replaced == 0


def test_nuls_in_plain_text_do_not_make_it_utf16() -> None:
    assert decode(b"a,b\n1,2\0\n3,4\n").encoding == "utf-8"


def test_a_few_wrong_bytes_in_utf8_are_replaced_and_counted() -> None:
    decoded = decode(("Größe und Übermaß, " * 20).encode() + b"\xff")
    assert (decoded.encoding, decoded.replaced) == ("utf-8", 1)
    assert decoded.text.startswith("Größe")


def test_replacement_characters_of_the_author_are_no_damage() -> None:
    assert decode("the character \ufffd itself".encode()).replaced == 0


@pytest.mark.parametrize(
    "word",
    ["Köln", "Übung", "Öl", "für", "Noël", "élève", "año", "niño", "São", "más", "día", "smørrebrød", "þing", "Café", "20 °C für 5 €"],
)
@pytest.mark.parametrize("around", ["{}", "name;city\nAnn;{}\n", "id,name\n1,{}\n2,Bob\n", "The word is {}, as said.\n"])
def test_a_single_word_of_windows_1252_is_no_chinese(word: str, around: str) -> None:
    text = around.format(word)
    assert decode(text.encode("cp1252")).text == text
