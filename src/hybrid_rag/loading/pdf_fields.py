"""What a PDF page says outside its text: the values of form fields, and notes that people put on it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

MOST_ANNOTATIONS = 5000  # of one page
LONGEST_VALUE = 20_000  # characters


def annotations(page: Any, form: Any) -> list[str]:
    """Lines ``name: value`` of filled fields and the texts of notes, in the order of the page.

    ``form``: pypdfium2's form environment or None. The caller holds the lock of pdfium.
    """
    import pypdfium2.raw as c

    out = []
    for index in range(min(c.FPDFPage_GetAnnotCount(page.raw), MOST_ANNOTATIONS)):
        annotation = c.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            kind = c.FPDFAnnot_GetSubtype(annotation)
            if kind == c.FPDF_ANNOT_WIDGET and form is not None:
                line = _field(c, form.raw, annotation)
            elif kind in (c.FPDF_ANNOT_TEXT, c.FPDF_ANNOT_FREETEXT):
                line = _string(lambda buffer, size, a=annotation: c.FPDFAnnot_GetStringValue(a, b"Contents", buffer, size))
            else:
                line = ""
        finally:
            c.FPDFPage_CloseAnnot(annotation)
        if line.strip():
            out.append(line.strip())
    return list(dict.fromkeys(out))  # the parts of one field that stands in several places say the same


def _field(c: Any, form: Any, annotation: Any) -> str:
    kind = c.FPDFAnnot_GetFormFieldType(form, annotation)
    name = _string(lambda buffer, size: c.FPDFAnnot_GetFormFieldAlternateName(form, annotation, buffer, size))
    name = name or _string(lambda buffer, size: c.FPDFAnnot_GetFormFieldName(form, annotation, buffer, size))
    if kind in (c.FPDF_FORMFIELD_CHECKBOX, c.FPDF_FORMFIELD_RADIOBUTTON):
        if not c.FPDFAnnot_IsChecked(form, annotation):
            return ""
        value = _string(lambda buffer, size: c.FPDFAnnot_GetFormFieldExportValue(form, annotation, buffer, size)) or "yes"
    elif kind in (c.FPDF_FORMFIELD_TEXTFIELD, c.FPDF_FORMFIELD_COMBOBOX, c.FPDF_FORMFIELD_LISTBOX):
        value = _string(lambda buffer, size: c.FPDFAnnot_GetFormFieldValue(form, annotation, buffer, size))
    else:
        return ""
    return f"{name}: {value}" if name and value.strip() else value


def _string(call: Callable[[Any, int], int]) -> str:
    """A UTF-16 string that pdfium writes into a buffer of the size it asks for."""
    import pypdfium2.raw as c

    size = call(None, 0)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(ctypes.cast(buffer, ctypes.POINTER(c.FPDF_WCHAR)), size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace")[:LONGEST_VALUE]
