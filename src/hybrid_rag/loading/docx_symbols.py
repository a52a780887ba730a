"""Characters of symbol fonts as what they show: Word stores a code that means something in that font only."""

from __future__ import annotations

import re
from typing import Any

from hybrid_rag.loading.docx_package import attribute, child

# The encoding of the Symbol font (Adobe), codes 0x20 to 0x7E and 0xA0 to 0xFE; a blank stands for none.
_SYMBOL = dict(
    zip(
        (*range(0x20, 0x7F), *range(0xA0, 0xFF)),
        " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_ αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
        "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ 〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭",
        strict=True,
    )
)
# Of Wingdings what carries meaning in forms and lists: boxes, ticks, arrows.
_WINGDINGS = {0x6F: "☐", 0xA8: "☐", 0x72: "☐", 0x71: "☐", 0x78: "☒", 0xFD: "☒", 0x54: "☒", 0x53: "☑", 0xFE: "☑", 0xFC: "✓", 0xFB: "✗",
              0xDF: "←", 0xE0: "→", 0xE1: "↑", 0xE2: "↓", 0xEF: "⇐", 0xF0: "⇒"}  # fmt: skip
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": {0x52: "☑", 0x54: "☒", 0x51: "☒", 0xA3: "☐", 0x50: "✓", 0x4F: "✗"}}
_PRIVATE = re.compile("[\uf020-\uf0ff]")  # where Word puts the codes of symbol fonts


def symbol(element: Any) -> str:
    """The character of a ``sym`` element: nothing, when its code means something only in a font that is not known here."""
    try:
        code = int(attribute(element, "char") or "", 16)
    except ValueError:
        return ""
    known = _FONTS.get((attribute(element, "font") or "").casefold())
    if known is not None:
        return known.get(code & 0xFF if code >= 0xF000 else code, "").strip()
    return chr(code) if 0x20 <= code <= 0xD7FF else ""


def in_font(text: str, run: Any) -> str:
    """The text of a run whose private characters are codes of its symbol font; those of an unknown font are left out."""
    if not _PRIVATE.search(text):
        return text
    properties = child(run, "rPr") if run is not None else None
    fonts = child(properties, "rFonts") if properties is not None else None
    font = (attribute(fonts, "ascii") or attribute(fonts, "hAnsi") or "").casefold() if fonts is not None else ""
    known = _FONTS.get(font, {})
    return _PRIVATE.sub(lambda match: known.get(ord(match[0]) & 0xFF, ""), text)
