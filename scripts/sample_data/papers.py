"""The contents of the Word and PDF documents, as parts that the writers understand.

A part of a Word document is (kind, content): title, heading, text, list, table, or note (text, footnote).
A page of a PDF is (heading, parts); a part is a paragraph or a table as a list of rows.
"""

from __future__ import annotations

from typing import Any

Part = tuple[str, Any]
Page = tuple[str, list[str | list[list[str]]]]

AGREEMENT: list[Part] = [
    ("title", "Supplier Agreement"),
    ("text", "between Northwind Electronics B.V., Rotterdam, and Voltana Cells GmbH, Graz, signed on 8 May 2023. Contract number NV-2023-118."),
    ("heading", "Delivery"),
    ("text", "Voltana delivers battery cells every second Tuesday to the warehouse in Leipzig. A delivery is late when it arrives more than 3 working days after the agreed date."),
    ("text", "Forecasts for the next quarter are sent by Northwind on the first working day of the month and bind neither party."),
    ("heading", "Prices and payment"),
    ("table", [["Cell type", "Price per unit (EUR)", "Minimum order"], ["VC-18", "2.35", "5,000"], ["VC-21", "3.10", "3,000"], ["VC-26", "4.80", "1,000"]]),
    ("text", "Invoices are payable within 45 days. A discount of 2 % is granted for payment within 10 days."),
    ("note", ("Prices are reviewed once a year, on 1 June.", "An increase of more than 6 % gives Northwind the right to terminate within 30 days.")),
    ("heading", "Quality"),
    ("text", "Cells keep at least 80 % of their capacity after 600 charging cycles. Northwind examines each delivery within 10 working days and reports defects in writing."),
    ("list", ["A batch is rejected when more than 1 % of the sample fails.", "Rejected batches are collected by Voltana within 5 working days.", "Voltana bears the cost of recalls that its cells cause, up to 2 million EUR."]),
    ("heading", "Penalties"),
    ("text", "For each working day of delay Voltana pays 0.5 % of the order value, at most 8 %."),
    ("heading", "Confidentiality"),
    ("text", "Both parties keep drawings, prices and test results secret during the agreement and for 4 years after its end."),
    ("heading", "Term and termination"),
    ("text", "The agreement runs for three years and is renewed by one year unless it is terminated in writing 6 months before its end. The court of Rotterdam is competent."),
    ("text", "Signed for Northwind by Helena Brandt, managing director, and for Voltana by Tobias Rauch."),
]  # fmt: skip

ONBOARDING: list[Part] = [
    ("title", "Employee Onboarding Guide"),
    ("text", "Welcome to Northwind Electronics. This guide covers your first weeks; your mentor helps with everything else."),
    ("heading", "First day"),
    ("text", "New colleagues report at 08:45 to the people desk in the Rotterdam office. Badge, laptop and the locker key are handed out by Ines Caldeira."),
    ("list", ["Bring your identity card and your bank details.", "Sign the data protection statement before you get a password.", "Lunch with your mentor is at 12:30."]),
    ("heading", "Working hours and leave"),
    ("text", "A full-time week has 38 hours. Everybody has 27 days of paid leave a year; up to 5 unused days can be carried over until 31 March."),
    ("note", ("Sick notes are handed in from the third day of illness.", "In December, when the stores are busiest, from the first day.")),
    ("heading", "Training plan"),
    ("table", [["Week", "Topic", "Trainer"], ["1", "Safety and cash handling", "Amina Haddad"], ["2", "Product knowledge", "Noor Bakker"], ["3", "Returns and warranty", "Marta Lindqvist"], ["4", "Sales conversation", "Amina Haddad"]]),
    ("text", "The plan ends with a test of 40 questions; 32 right answers are needed to pass. It can be repeated once."),
    ("heading", "Staff discount"),
    ("text", "After the trial period of 2 months employees buy at a discount of 20 %, for at most 2,500 EUR a year."),
    ("heading", "Expenses and travel"),
    ("text", "Journeys between stores are made by train, second class. A private car is paid with 0.23 EUR a kilometre. Receipts are handed in by the 5th of the next month."),
    ("heading", "IT support"),
    ("text", "The helpdesk is reached under extension 4417 or at helpdesk@northwind.example. Passwords expire after 180 days."),
]  # fmt: skip

MANUAL: list[Page] = [
    ("Welcome", [
        "Auralis Studio Headphone: user manual, edition 3. It describes the Auralis Studio Headphone 204.",
        "Read this manual before first use and keep it for later. The headphone is made for music and calls; it is no hearing protection.",
        "Listening at high volume for a long time can damage your hearing. The Auralis Connect app warns above 85 decibels.",
    ]),
    ("In the box", [
        "The box contains the headphone, a USB-C charging cable of 1.2 metres, an audio cable with 3.5 mm plugs, a hard case and this manual.",
        "If something is missing, write to parts@auralis.example within 14 days.",
        [["Property", "Value"], ["Weight", "262 g"], ["Drivers", "40 mm"], ["Frequency range", "12 Hz to 22 kHz"], ["Bluetooth", "5.3, range 15 m"], ["Battery", "720 mAh"]],
    ]),
    ("Charging", [
        "Charge the headphone for 2.5 hours before first use. A full charge lasts 38 hours with noise cancelling off and 30 hours with noise cancelling on.",
        "Ten minutes of charging give 4 hours of playback. The light is amber while charging and white when the battery is full.",
        "Do not charge below 5 degrees Celsius. When the headphone is stored for more than three months, charge it to about half.",
    ]),
    ("Pairing", [
        "Hold the power button for 5 seconds until the light blinks blue, then choose AURALIS STUDIO on your device.",
        "Two devices can be connected at the same time. To clear all pairings hold power and volume down together for 8 seconds.",
        "A call on the second device interrupts the music on the first. Press the button once to take the call, twice to decline it.",
    ]),
    ("Care and safety", [
        "Clean the ear cushions with a dry cloth. Do not use alcohol. The cushions can be replaced; order part AU-CUSH-07.",
        "Use the headphone between 0 and 40 degrees Celsius. It is splash-proof to IPX4 but must not be put under water.",
        "Old batteries do not belong in household waste. Every Northwind store takes them back.",
    ]),
    ("Troubleshooting", [
        "No sound on one side: install firmware 4.2.1 with the Auralis Connect app and reset the headphone by holding the power button for 12 seconds.",
        "The light blinks red three times: the battery is too warm. Let the headphone cool down for 30 minutes.",
        "The headphone does not switch on: charge it for 15 minutes with another cable. If that does not help, file a warranty claim with your order number.",
    ]),
]  # fmt: skip

NOTICE: list[Page] = [
    ("Price notice for spring 2025", [
        "To all store managers, from Peter Vogel, finance, 27 January 2025.",
        "From 1 March 2025 the prices of all Brightwell monitors rise by 4 %. The prices of Fennec wearables fall by 6 % on the same day.",
        "Shelf labels are to be changed before opening on 1 March. Orders placed until 28 February are delivered at the old price.",
        "The extended warranty of 12 more months costs as before:",
        [["Category", "Price (EUR)"], ["Phones", "39"], ["Tablets", "35"], ["Laptops", "59"], ["Cameras", "45"]],
        "Demo units are sold at 25 % off from 15 March; they keep the full warranty. Questions: prices@northwind.example.",
    ]),
]  # fmt: skip
