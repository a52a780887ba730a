"""The Markdown documents: policies, the store handbook, and the quality report, whose figures come from the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sample_data.tables import Shop

RETURN_POLICY = """---
title: Return Policy
date: 2024-11-01
tags: [policy, returns]
owner: Customer Service
---

# Return Policy

This policy applies to everything bought from Northwind Electronics, in the stores and on the web. Statutory rights of
consumers are not limited by it. Defects that appear during the warranty are handled as warranty claims, not as returns.

## Return window

Unopened products can be returned within 30 days of delivery for a full refund. Opened headphones and earbuds can be
returned within 14 days, and only with the hygiene seal replaced by our service desk. Opened laptops, tablets and phones
can be returned within 21 days if they have been reset to factory settings. All other opened products can be returned
within 21 days too.

## Proof of purchase

The customer shows the receipt, the order confirmation or the loyalty card. Without any of them the shift leader can grant a
voucher at the lowest price of the last 60 days.

## Restocking fee

A restocking fee of 15 % is charged on opened cameras and lenses. There is no restocking fee on other products.

## Items that cannot be returned

Downloaded software, gift cards and products that were engraved at the customer's request cannot be returned.

## Return shipping

Returns to a store are free. For returns by post the customer prints a label from the account page; 3.95 EUR is taken off the
refund, unless we sent the wrong product or it arrived damaged.

## Refunds

Refunds go to the original payment method within 5 business days after the product has reached the Rotterdam returns
centre. Purchases paid in cash above 500 EUR are refunded by bank transfer.

## Exchanges

A product can be exchanged once for another colour or size without a new receipt. The return window does not start again.

## Damaged on arrival

Transport damage is reported within 48 hours of delivery with two photographs to damage@northwind.example. A replacement leaves
the warehouse on the next working day, before the damaged product has come back.

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

Working days are Monday to Friday, except public holidays in the country of delivery.

## Free shipping

Standard shipping is free for orders of 75 EUR or more. Express shipping is never free.

## Cut-off time

Orders placed before 16:00 on a working day leave the warehouse on the same day.

## Tracking

The tracking number is mailed when the parcel leaves the warehouse. If it shows no movement for 4 working days, customer service
opens a search with the carrier, which takes up to 10 working days.

## Bulky goods

Monitors of 32 inches and larger are delivered by two people from Kestrel Freight, who call the customer one day ahead.

## Batteries and dangerous goods

Loose lithium batteries travel by road only and are never sent by express. Each parcel carries the label UN3481.

## Switzerland

Deliveries to Switzerland are handled by Alpina Post; customs duties are paid by the recipient.

## Delivery attempts

The carrier tries twice. After that the parcel waits for 7 days at the nearest pickup point and then goes back to us; we refund
the goods but not the shipping.
"""

HANDBOOK = """# Store Handbook

For all colleagues in the stores. Questions go to Amina Haddad, head of stores.

## Opening hours

All stores open at 09:30 and close at 19:00 from Monday to Saturday. On the last Sunday of each month they are open from
12:00 to 17:00.

## Opening the store

1. Switch off the alarm with the code of the shift leader.
2. Count the cash float: it is 250 EUR in each till.
3. Start the demo units and check that none is below 40 % battery.

## Closing the store

1. Count each till twice; a difference of more than 10 EUR is noted in the till book and signed by two people.
2. Put the takings into the night safe before 19:30.
3. Lock the display cabinets and switch on the alarm.

## Price matching

We match a lower price of another authorised retailer in the same country if the customer shows it within 10 days of the
purchase. Marketplaces and clearance sales are excluded. The shift leader approves a difference of more than 100 EUR.

## Loyalty programme

Members of the Northwind Circle collect 1 point for each full euro. 500 points are worth a voucher of 10 EUR, which is
valid for 12 months.

## Warranty claims at the desk

The desk enters the claim with the order number and hands out a loan device for repairs that take longer than 5 working days;
the deposit is 50 EUR. Drops and liquid damage are not covered and the claim is rejected.

## Gift cards

Gift cards are sold from 10 to 500 EUR and are valid for 5 years. A lost card is replaced only with its receipt.

## Lost property

Lost property is kept for 90 days at the service desk and then given to the municipal office.

## Trade-in

Phones and tablets younger than 5 years are taken in trade. The value is set by the Revalue app and is paid as a voucher.

## Emergencies

In case of fire everybody leaves through the loading bay and meets at the bicycle stand. The first-aid box hangs beside till 2; the
defibrillator is in the staff room.
"""


def quality_report(shop: Shop) -> str:
    claims, orders = shop.warranty_claims, shop.orders
    status = Counter(c[6] for c in claims)
    fault, fault_count = _first(c[5] for c in claims)
    product, product_count = _first(c[4] for c in claims)
    cents = sum(round(float(c[7]) * 100) for c in claims if c[7])
    return f"""# Quality Report 2024

Prepared by Marta Lindqvist, head of quality, on 3 February 2025.

## Summary

In 2024 the company took {len(orders):,} order lines, and until 31 January 2025 {len(claims)} warranty claims were filed for them, a claim
rate of {100 * len(claims) / len(orders):.1f} %. {status["approved"]} claims were approved, {status["rejected"]} were rejected and {status["pending"]} are pending. Approved repairs cost
{cents / 100:,.2f} EUR in total.

## Claims by category

| Category | Order lines | Claims | Claim rate |
|---|---|---|---|
{_by_category(shop)}

## Most frequent faults

The most frequent fault was "{fault}" with {fault_count} claims. The product with the most claims was the {product}
with {product_count} claims.

## Root causes

The battery faults were traced to a batch of cells from the supplier Voltana, delivered in March 2024. Voltana replaced
the batch free of charge and pays 40 % of the repair costs. Loose hinges on laptops come from a torque setting that was too
low on assembly line 3; it was corrected on 12 June 2024. Flickering monitors need a shorter cable; the longer one does not meet
the standard.

## Actions for 2025

- Every battery delivery is sampled at 2 % instead of 0.5 %.
- The service desk gets a second test bench by April 2025.
- Firmware 4.2.1 limits the charging current of all Auralis headphones.
- Straps of Fennec wearables are tested with 20,000 bends instead of 8,000.

## Targets

The claim rate shall fall below 12 % by the end of 2025, and the mean repair time from 9 to 6 working days.
"""


def _first(values: Iterable[str]) -> tuple[str, int]:
    """The most frequent value and its count; of equals the first by name."""
    return min(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))


def _by_category(shop: Shop) -> str:
    category = {p[0]: p[2] for p in shop.product_catalog}
    orders = Counter(category[o[2]] for o in shop.orders)
    claims = Counter(category[c[3]] for c in shop.warranty_claims)
    lines = (f"| {name} | {orders[name]} | {claims[name]} | {100 * claims[name] / orders[name]:.1f} % |" for name in sorted(orders))
    return "\n".join(lines)
