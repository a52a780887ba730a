"""Make the pictures of docs/web.md: the page over the sample, in Debian's Chromium, for people to look at.

Usage: python scripts/screenshots.py [--output docs/images] [--only NAME]
Needs the `test` extra and a Chromium (apt-get install chromium). The sample is indexed into a temporary folder.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CHROMIUM = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
FOLDERS = {"policies": ["return_policy.md", "shipping_policy.md"], "sales": ["orders.csv", "inventory.csv", "product_catalog.csv"],
           "service": ["warranty_claims.csv", "customer_feedback.csv", "support_call_SUP-88213.txt", "headphone_manual.pdf"]}  # fmt: skip


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The sample, in folders, indexed and served: the page's address."""
    data = folder / "data"
    shutil.copytree(ROOT / "data", data)
    for name, files in FOLDERS.items():
        (data / name).mkdir()
        for file in files:
            (data / file).rename(data / name / file)
    (data / "sales" / "locked_report.pdf").write_bytes(b"%PDF-1.7\n% cut off in the middle\n")
    settings = ["--set", f"data.directory={data}", "--set", f"vector_store.persist_directory={folder / 'index'}", "--set", "llm.provider=none",
                "--set", "embedding.provider=bundled", "--set", "web.upload=true"]  # fmt: skip
    program = [sys.executable, "-m", "hybrid_rag"]
    subprocess.run([*program, "index", *settings], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = subprocess.Popen([*program, "serve", "--port", "0", *settings], stderr=subprocess.PIPE, encoding="utf-8")
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        match = re.search(r"http://[\d.:]+/", line)
        assert match, f"the server said: {line}"
        yield match[0]
    finally:
        server.terminate()
        server.wait(timeout=20)


def _asked(page: Any) -> None:
    page.wait_for_selector(".turn-item .how", timeout=60_000)


SHOTS: dict[str, tuple[str, dict[str, int], str, Callable[[Any], None] | None]] = {
    "search": ("?q=opened+headphones+return", DESKTOP, "light", None),
    "source-markdown": ("?q=opened+headphones+return", DESKTOP, "light", lambda page: _open(page, 0)),
    "source-pdf": ("?q=noise+cancelling+battery+hours&kind=text", DESKTOP, "light", lambda page: _open_pdf(page)),
    "source-rows": ("?q=WC-2024-00317", DESKTOP, "dark", lambda page: _open(page, 0)),
    "ask": ("ask?q=Within+how+many+days+can+opened+headphones+be+returned%3F", DESKTOP, "light", _asked),
    "table-answer": ("ask?q=What+is+the+total+order+value+per+month%3F", DESKTOP, "light", _asked),
    "not-found": ("ask?q=Who+won+the+football+world+cup+in+1998%3F", DESKTOP, "light", _asked),
    "documents": ("documents", DESKTOP, "light", None),
    "statistics": ("statistics", DESKTOP, "dark", None),
    "phone-search": ("?q=opened+headphones+return", PHONE, "light", None),
    "phone-answer": ("ask?q=What+is+the+total+order+value+per+month%3F", PHONE, "dark", _asked),
    "phone-source": ("?q=opened+headphones+return", PHONE, "light", lambda page: _open(page, 0)),
}


def _open(page: Any, n: int) -> None:
    page.locator(".hit-link").nth(n).click()
    page.wait_for_selector("#source-title")


def _open_pdf(page: Any) -> None:
    page.locator(".hit-link", has_text=".pdf").first.click()
    page.wait_for_selector(".page-image")
    page.wait_for_timeout(1500)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--only", help="names that hold this")
    parser.add_argument("--address", help="of a page that is served already, with a / at the end")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    options.output.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or sys.exit("There is no chromium. Run: apt-get install chromium")
    with ExitStack() as stack:
        address = options.address or stack.enter_context(served(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        for name, (path, size, scheme, act) in SHOTS.items():
            if options.only and options.only not in name:
                continue
            page = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce").new_page()  # type: ignore[arg-type]
            page.goto(address + path, wait_until="networkidle")
            if act:
                act(page)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=options.output / f"{name}.png")
            print(options.output / f"{name}.png", file=sys.stderr)
            page.context.close()
        browser.close()


if __name__ == "__main__":
    main()
