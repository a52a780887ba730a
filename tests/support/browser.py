"""Chromium for the tests of the page: Debian's package, driven by Playwright. Without it those tests are skipped."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

SECONDS = 40  # that a busy machine may take for one step
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync"]  # fmt: skip
DESKTOP, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}


def chromium() -> str:
    """The browser's path, or the test is skipped with the reason."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium; `make browser` installs it on Debian")
    return path


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser for the time of a block."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS, headless=True)
        yield browser
        browser.close()


@contextmanager
def tab(browser: Any, **options: Any) -> Iterator[Any]:
    """A page that must not run into an error, load anything from elsewhere, or break its own content policy."""
    context = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce", **options})
    context.set_default_timeout(SECONDS * 1000)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on(
        "console",
        lambda m: faults.append(f"console: {m.text}") if m.type == "error" and not re.search("status of|net::ERR_FAILED", m.text) else None,
    )
    page.on(
        "request", lambda r: faults.append(f"elsewhere: {r.url}") if not r.url.startswith(("http://127.0.0.1:", "data:", "blob:")) else None
    )
    yield page
    assert page.evaluate("window.hacked === undefined")
    context.close()
    assert faults == []
