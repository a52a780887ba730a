"""The shop's documents: policies, reports, agreements, a manual, notes. Their figures come from the tables."""

from __future__ import annotations

import zipfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sample_data.tables import Shop

STAMP = datetime(2025, 2, 3, 9, 0, tzinfo=UTC)

RETURN_POLICY = """# Return Policy

This policy applies to everything bought from Northwind Electronics, in the stores and on the web.

## Return window

Unopened products can be returned within 30 days of delivery for a full refund. Opened headphones and earbuds can be
returned within 14 days, and only with the hygiene seal replaced by our service desk. Opened laptops, tablets and phones
can be returned within 21 days if they have been reset to factory settings.

## Restocking fee

A restocking fee of 15 % is charged on opened cameras and lenses. There is no restocking fee on other products.

## Items that cannot be returned

Downloaded software, gift cards and products that were engraved at the customer's request cannot be returned.

## Refunds

Refunds go to the original payment method within 5 business days after the product has reached the Rotterdam returns
centre. Purchases paid in cash above 500 EUR are refunded by bank transfer.

## Holiday extension

Purchases made between 15 November and 24 December can be returned until 31 January of the next year.
"""

SHIPPING_POLICY = """---
title: Shipping Policy
date: 2024-10-01
tags: [policy, shipping]
owner: Logistics
---

# Shipping Policy

## Delivery times

| Method | Countries | Working days | Price (EUR) |
|---|---|---|---|
| Standard | Netherlands, Belgium, Germany | 2 to 3 | 4.95 |
| Standard | France, Austria | 3 to 5 | 6.95 |
| Express | all of the above | 1 | 14.95 |
| Pickup | stores | same day | 0.00 |

## Free shipping

Standard shipping is free for orders of 75 EUR or more. Express shipping is never free.

## Cut-off time

Orders placed before 16:00 on a working day leave the warehouse on the same day.

## Bulky goods

Monitors of 32 inches and larger are delivered by two people from Kestrel Freight, who call the customer one day ahead.

## Switzerland

Deliveries to Switzerland are handled by Alpina Post; customs duties are paid by the recipient.
"""

HANDBOOK = """# Store Handbook

## Opening hours

All stores open at 09:30 and close at 19:00 from Monday to Saturday. On the last Sunday of each month they are open from
12:00 to 17:00.

## Opening the store

1. Switch off the alarm with the code of the shift leader.
2. Count the cash float: it is 250 EUR in each till.
3. Start the demo units and check that none is below 40 % battery.

## Price matching

We match a lower price of another authorised retailer in the same country if the customer shows it within 10 days of the
purchase. Marketplaces and clearance sales are excluded. The shift leader approves a difference of more than 100 EUR.

## Loyalty programme

Members of the Northwind Circle collect 1 point for each full euro. 500 points are worth a voucher of 10 EUR, which is
valid for 12 months.

## Lost property

Lost property is kept for 90 days at the service desk and then given to the municipal office.

## Trade-in

Phones and tablets younger than 5 years are taken in trade. The value is set by the Revalue app and is paid as a voucher.
"""


def quality_report(shop: Shop) -> str:
    claims, orders = shop.warranty_claims[1:], shop.orders[1:]
    by_status = Counter(c[6] for c in claims)
    fault, fault_count = Counter(c[5] for c in claims).most_common(1)[0]
    product, product_count = sorted(Counter(c[4] for c in claims).items(), key=lambda x: (-x[1], x[0]))[0]
    cost = sum(float(c[7]) for c in claims if c[7])
    return f"""# Quality Report 2024

Prepared by Marta Lindqvist, head of quality, on 3 February 2025.

## Summary

In 2024 the company took {len(orders):,} order lines, and {len(claims)} warranty claims were filed for them, a claim rate of
{100 * len(claims) / len(orders):.1f} %. {by_status['approved']} claims were approved, {by_status['rejected']} were rejected and {by_status['pending']} are pending. Approved repairs cost
{cost:,.2f} EUR in total.

## Most frequent faults

The most frequent fault was "{fault}" with {fault_count} claims. The product with the most claims was the {product}
with {product_count} claims.

## Root causes

The battery faults were traced to a batch of cells from the supplier Voltana, delivered in March 2024. Voltana replaced
the batch free of charge and pays 40 % of the repair costs. Loose hinges on laptops come from a torque setting that was too
low on assembly line 3; it was corrected on 12 June 2024.

## Actions for 2025

- Every battery delivery is sampled at 2 % instead of 0.5 %.
- The service desk gets a second test bench by April 2025.
- Firmware 4.2.1 limits the charging current of all Auralis headphones.

## Targets

The claim rate shall fall below 20 % by the end of 2025, and the mean repair time from 9 to 6 working days.
"""


MEETING_NOTES = """Operations meeting, 20 January 2025

Present: Marta Lindqvist (quality), Joris de Wit (logistics), Amina Haddad (stores), Peter Vogel (finance)

1. Leipzig warehouse
Joris reported that the new conveyor in Leipzig starts on 17 March 2025. Until then outgoing orders are limited to 1,800
parcels a day. Amina asked to announce later delivery dates on the web shop.

2. Budget
Peter confirmed a budget of 48,000 EUR for the second test bench. Offers are in from Testronic and from Meyer Instruments;
the decision is due on 14 February.

3. Staff
The Utrecht store looks for a deputy manager. Interviews are held in the first week of February.

4. Next meeting
17 February 2025, 10:00, room Kingfisher.
"""

SUPPORT_CALL = """Support call transcript
Ticket: SUP-88213
Date: 9 January 2025
Agent: Noor Bakker
Customer: Mr. Steiner, Vienna

Agent: Northwind Electronics, this is Noor. How can I help you?
Customer: My headphones only play on the left side since the last update.
Agent: Which firmware do they show?
Customer: It says 4.1.7.
Agent: That version has a known fault with the right channel. Please install firmware 4.2.1 with the Auralis Connect app,
then hold the power button for 12 seconds to reset the headphones.
Customer: It works again, thank you.
Agent: You are welcome. I have noted a goodwill credit of 15 EUR on your account.
"""

AGREEMENT: list[tuple[str, Any]] = [
    ("title", "Supplier Agreement"),
    ("text", "between Northwind Electronics B.V., Rotterdam, and Voltana Cells GmbH, Graz, signed on 8 May 2023."),
    ("heading", "Delivery"),
    ("text", "Voltana delivers battery cells every second Tuesday to the warehouse in Leipzig. A delivery is late when it arrives more than 3 working days after the agreed date."),
    ("heading", "Prices and payment"),
    ("table", [["Cell type", "Price per unit (EUR)", "Minimum order"], ["VC-18", "2.35", "5,000"], ["VC-21", "3.10", "3,000"], ["VC-26", "4.80", "1,000"]]),
    ("text", "Invoices are payable within 45 days. A discount of 2 % is granted for payment within 10 days."),
    ("heading", "Penalties"),
    ("text", "For each working day of delay Voltana pays 0.5 % of the order value, at most 8 %."),
    ("heading", "Term and termination"),
    ("text", "The agreement runs for three years and is renewed by one year unless it is terminated in writing 6 months before its end. The court of Rotterdam is competent."),
]

ONBOARDING: list[tuple[str, Any]] = [
    ("title", "Employee Onboarding Guide"),
    ("heading", "First day"),
    ("text", "New colleagues report at 08:45 to the people desk in the Rotterdam office. Badge, laptop and the locker key are handed out by Ines Caldeira."),
    ("heading", "Working hours and leave"),
    ("text", "A full-time week has 38 hours. Everybody has 27 days of paid leave a year; up to 5 unused days can be carried over until 31 March."),
    ("heading", "Training plan"),
    ("table", [["Week", "Topic", "Trainer"], ["1", "Safety and cash handling", "Amina Haddad"], ["2", "Product knowledge", "Noor Bakker"], ["3", "Returns and warranty", "Marta Lindqvist"]]),
    ("heading", "Staff discount"),
    ("text", "After the trial period of 2 months employees buy at a discount of 20 %, for at most 2,500 EUR a year."),
    ("heading", "IT support"),
    ("text", "The helpdesk is reached under extension 4417 or at helpdesk@northwind.example. Passwords expire after 180 days."),
]

MANUAL: list[tuple[str, list[str]]] = [
    ("Welcome", ["Auralis Studio Headphone: user manual, edition 3.", "Read this manual before first use and keep it for later. The headphone is made for music and calls; it is no hearing protection."]),
    ("In the box", ["The box contains the headphone, a USB-C charging cable of 1.2 metres, an audio cable with 3.5 mm plugs, a hard case and this manual.", "If something is missing, write to parts@auralis.example within 14 days."]),
    ("Charging", ["Charge the headphone for 2.5 hours before first use. A full charge lasts 38 hours with noise cancelling off and 30 hours with noise cancelling on.", "Ten minutes of charging give 4 hours of playback. The light is amber while charging and white when the battery is full."]),
    ("Pairing", ["Hold the power button for 5 seconds until the light blinks blue, then choose AURALIS STUDIO on your device.", "Two devices can be connected at the same time. To clear all pairings hold power and volume down together for 8 seconds."]),
    ("Care and safety", ["Clean the ear cushions with a dry cloth. Do not use alcohol. The cushions can be replaced; order part AU-CUSH-07.", "Use the headphone between 0 and 40 degrees Celsius. It is splash-proof to IPX4 but must not be put under water."]),
    ("Troubleshooting", ["No sound on one side: install firmware 4.2.1 with the Auralis Connect app and reset the headphone by holding the power button for 12 seconds.", "The light blinks red three times: the battery is too warm. Let the headphone cool down for 30 minutes."]),
]

NOTICE: list[tuple[str, list[str]]] = [
    ("Price notice for spring 2025", [
        "To all store managers, from Peter Vogel, finance, 27 January 2025.",
        "From 1 March 2025 the prices of all Brightwell monitors rise by 4 %. The prices of Fennec wearables fall by 6 % on the same day.",
        "Shelf labels are to be changed before opening on 1 March. Orders placed until 28 February are delivered at the old price.",
        "The extended warranty of 12 more months costs 39 EUR for phones and 59 EUR for laptops, as before.",
    ]),
]  # fmt: skip


def write(shop: Shop, folder: Path) -> None:
    texts = {
        "return_policy.md": RETURN_POLICY, "shipping_policy.md": SHIPPING_POLICY, "store_handbook.md": HANDBOOK,
        "quality_report_2024.md": quality_report(shop), "meeting_notes_2025-01-20.txt": MEETING_NOTES, "support_call_SUP-88213.txt": SUPPORT_CALL,
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    _docx(folder / "supplier_agreement.docx", AGREEMENT)
    _docx(folder / "onboarding_guide.docx", ONBOARDING)
    _pdf(folder / "headphone_manual.pdf", "Auralis Studio Headphone Manual", MANUAL)
    _pdf(folder / "price_notice_2025.pdf", "Price Notice Spring 2025", NOTICE)


def _docx(path: Path, parts: list[tuple[str, Any]]) -> None:
    import docx

    document = docx.Document()
    document.core_properties.created = document.core_properties.modified = STAMP.replace(tzinfo=None)
    for kind, content in parts:
        if kind == "title":
            document.core_properties.title = content
            document.add_heading(content, 0)
        elif kind == "heading":
            document.add_heading(content, 1)
        elif kind == "text":
            document.add_paragraph(content)
        else:
            table = document.add_table(rows=0, cols=len(content[0]))
            for record in content:
                for cell, text in zip(table.add_row().cells, record, strict=True):
                    cell.text = text
    document.save(str(path))
    _same_stamps(path)


def _same_stamps(path: Path) -> None:
    """Write the archive again with fixed times, so that the same content gives the same bytes."""
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in sorted(archive.namelist())]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name, STAMP.timetuple()[:6]), data, zipfile.ZIP_DEFLATED)


def _pdf(path: Path, title: str, pages: list[tuple[str, list[str]]]) -> None:
    from fpdf import FPDF

    pdf = FPDF()
    pdf.set_title(title)
    pdf.set_creation_date(STAMP)
    for heading, paragraphs in pages:
        pdf.add_page()
        pdf.start_section(heading)
        pdf.set_font("Helvetica", "B", 16)
        pdf.multi_cell(0, 10, heading, new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Helvetica", "", 11)
        for paragraph in paragraphs:
            pdf.ln(3)
            pdf.multi_cell(0, 6, paragraph, new_x="LMARGIN", new_y="NEXT")
    pdf.output(str(path))
