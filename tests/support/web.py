"""The page served on loopback in a thread, over a small collection with a document of each kind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hybrid_rag.config import load
from hybrid_rag.service import Service, open_service
from tests.support.files import docx, p, pdf, r

RETURNS = """---
title: Return Policy
date: 2024-11-01
tags: [policy, returns]
---

# Return Policy

Statutory rights are not limited by it.

## Return window

Unopened products can be returned within 30 days. Opened **headphones** can be returned within 14 days, and only with the
hygiene seal replaced.

- A list item about exchanges.

| fee | amount |
|---|---|
| restocking | 15 % |
"""
SHIPPING = (
    "---\ndate: 2025-03-02\ntags: [policy]\n---\n# Shipping\n\nParcels to Norway take five days. Express parcels arrive the next day.\n"
)
HOSTILE = """# <img src=x onerror="window.hacked=1">

<script>window.hacked = 1</script> zebra crossing

[click me](javascript:window.hacked=1) and ![picture](http://127.0.0.1:9/track.png) and [data](data:text/html,<script>window.hacked=1</script>)

<svg onload="window.hacked=1"></svg> "quotes" 'and' <b>bold zebra</b>
"""
HOSTILE_ROWS = 'name,note\n"<script>window.hacked=1</script>","=cmd|zebra ""onmouseover=window.hacked=1"""\n'
MANUAL = [
    "Kestrel manual\nThe charging cable is red.",
    "Battery\nA full charge lasts 38 hours with noise\ncancelling switched off.",
    "Service\nCall us.",
]


def write_collection(folder: Path) -> Path:
    """The data folder of the tests; returns it."""
    data = folder / "data"
    for name in ("policies", "sales/2024", "notes"):
        (data / name).mkdir(parents=True)
    (data / "policies" / "returns.md").write_text(RETURNS, encoding="utf-8")
    (data / "policies" / "shipping.md").write_text(SHIPPING, encoding="utf-8")
    pdf(data / "manual.pdf", MANUAL, title="Kestrel manual")
    docx(data / "guide.docx", p(r("Onboarding guide"), "Heading1") + p(r("New staff get a badge from Olga on Monday & sign for it.")))
    (data / "notes" / "call.txt").write_text("Caller asks about a wobbling tripod.\nPromised a call back.\n", encoding="utf-8")
    (data / "notes" / "hostile.md").write_text(HOSTILE, encoding="utf-8")
    (data / "notes" / "hostile.csv").write_text(HOSTILE_ROWS, encoding="utf-8")
    lines = ["order_id,order_date,city,channel,amount"]
    for i in range(120):
        lines.append(
            f"ORD-{i + 1:04d},2024-{i % 12 + 1:02d}-05,{('Berlin', 'Oslo', 'Porto')[i % 3]},{('web', 'store')[i % 2]},{100 + i}.50"
        )
    (data / "sales" / "2024" / "orders.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for i in range(12):
        (data / "notes" / f"gadget{i:02d}.txt").write_text(f"Gadget number {i} is a gadget for testing filters.\n", encoding="utf-8")
    return data


def service_over(folder: Path, *settings: str, index: bool = True) -> Service:
    """A service over ``folder / "data"``, by keywords only."""
    own = [f"data.directory={folder / 'data'}", f"vector_store.persist_directory={folder / 'index'}", "embedding.provider=none",
           "llm.provider=none", "vector_store.mode=exact", "document_processing.workers=1", "web.requests_per_minute=100000"]  # fmt: skip
    service = open_service(load(settings=[*own, *settings], environ={}))
    if index:
        service.index()
    return service


@contextmanager
def served(service: Service, *, token: str | None = None) -> Iterator[str]:
    """The service's page, at the address given."""
    import uvicorn

    from hybrid_rag.web.app import create_app
    from hybrid_rag.web.server import listen

    with listen("127.0.0.1", 0) as sock:
        options: dict[str, Any] = {"log_config": None, "access_log": False, "lifespan": "on", "timeout_graceful_shutdown": 2, "ws": "none"}
        server = uvicorn.Server(uvicorn.Config(create_app(service, token=token), **options))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=20)
