"""Write the shop's documents: policies, reports, agreements, a manual, notes. Their figures come from the tables."""

from __future__ import annotations

from pathlib import Path

from sample_data import notes, papers, policies
from sample_data.tables import Shop
from sample_data.writers import write_docx, write_pdf


def write(shop: Shop, folder: Path) -> None:
    for name, text in texts(shop).items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    write_docx(folder / "supplier_agreement.docx", papers.AGREEMENT)
    write_docx(folder / "onboarding_guide.docx", papers.ONBOARDING)
    write_pdf(folder / "headphone_manual.pdf", "Auralis Studio Headphone Manual", papers.MANUAL)
    write_pdf(folder / "price_notice_2025.pdf", "Price Notice Spring 2025", papers.NOTICE)


def texts(shop: Shop) -> dict[str, str]:
    """The Markdown and plain text documents by file name."""
    return {
        "return_policy.md": policies.RETURN_POLICY,
        "shipping_policy.md": policies.SHIPPING_POLICY,
        "store_handbook.md": policies.HANDBOOK,
        "quality_report_2024.md": policies.quality_report(shop),
        "meeting_notes_2025-01-20.txt": notes.MEETING_NOTES,
        "support_call_SUP-88213.txt": notes.SUPPORT_CALL,
    }
