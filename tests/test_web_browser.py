"""The page in a real Chromium: search, filters, answers, sources, tables, keyboard, phone, dark, hostile documents, accessibility."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid_rag.service import Service
from tests.support.browser import PHONE, browsing, chromium, tab
from tests.support.ollama import FakeOllama, running
from tests.support.web import served, service_over, write_collection

REPLY = "Opened headphones can be returned within 14 days [1]. Unopened products can be returned within 30 days [1]."
QUESTION = "Within how many days can opened headphones be returned?"


class Model:
    """The scripted language model: what it answers, and whether it waits before its last piece."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.text = REPLY

    def __call__(self, body: dict[str, Any]) -> Iterator[str]:
        prompt = body["messages"][-1]["content"]
        if "Rewritten question:" in prompt:
            yield "Within how many days can unopened headphones be returned?"
            return
        for n, word in enumerate(re.findall(r"\S+\s*", self.text)):
            if n > 10:  # in the second sentence
                self.go.wait(30)
            yield word


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[tuple[str, Service]]:
    chromium()
    folder = tmp_path_factory.mktemp("site")
    write_collection(folder)
    with running(FakeOllama(reply=model)) as ollama:
        settings = ("llm.provider=ollama", f"ollama.base_url={ollama.url}", "retrieval.rerank=off", "web.upload=true")
        with service_over(folder, *settings) as service, served(service) as url:
            yield url, service


@pytest.fixture(scope="module")
def url(site: tuple[str, Service]) -> str:
    return site[0]


@pytest.fixture(scope="module")
def browser(site: tuple[str, Service]) -> Iterator[Any]:
    with browsing() as browser:
        yield browser


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    with tab(browser) as page:
        yield page


def expect(thing: Any) -> Any:
    from playwright.sync_api import expect

    expect.set_options(timeout=40_000)
    return expect(thing)


def search(page: Any, words: str) -> None:
    page.locator("#q").fill(words)
    page.wait_for_selector("#results[aria-busy=false]:has(.summary, .state) >> nth=0")
    page.wait_for_url(lambda address: words.split()[0] in address)
    page.wait_for_selector("#results[aria-busy=false]")


# ---------------------------------------------------------------- search


def test_results_come_while_typing_and_the_address_keeps_them(page: Any, url: str) -> None:
    page.goto(url)
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("noise cancelling", delay=20)
    expect(page.locator(".hit-link").first).to_contain_text("manual.pdf")
    expect(page.locator(".hit .place").first).to_contain_text("page 2")
    assert page.locator(".hit mark").first.inner_text().lower() == "noise"
    expect(page).to_have_url(re.compile(r"\?q=noise\+cancelling$"))
    expect(page).to_have_title(re.compile("noise cancelling"))
    page.reload()
    assert page.locator("#q").input_value() == "noise cancelling"
    expect(page.locator(".hit-link").first).to_contain_text("manual.pdf")
    page.locator(".why summary").first.click()
    expect(page.locator(".why-body").first).to_contain_text("bm25")


def test_the_address_alone_gives_the_results_without_the_script(browser: Any, url: str) -> None:
    with tab(browser, java_script_enabled=False) as page_:
        page_.evaluate = lambda *_: True
        page_.goto(f"{url}/?q=parcels&kind=text")
        expect(page_.locator(".hit-link").first).to_contain_text("shipping.md")
        page_.locator(".hit-link").first.click()
        expect(page_.locator(".markdown")).to_contain_text("Parcels to Norway")


def test_nothing_found_and_errors_say_so(page: Any, url: str) -> None:
    page.goto(f"{url}/?q=xyzzyplugh")
    expect(page.locator(".state h2")).to_have_text("Nothing found")
    page.goto(f"{url}/?q=days&tag=%28")
    expect(page.locator(".state.error")).to_contain_text("tag expression")
    page.goto(f"{url}/nothing/here")
    expect(page.locator(".state.error")).to_contain_text("Not Found")
    page.goto(f"{url}/?q=days")
    page.route("**/fragments/results*", lambda route: route.abort())
    page.locator("#q").fill("other")
    expect(page.locator(".state.error")).to_contain_text("cannot be reached")


def test_back_and_forward_keep_query_filters_and_source(page: Any, url: str) -> None:
    page.goto(f"{url}/?q=gadget")
    expect(page.locator(".hit")).to_have_count(10)
    page.get_by_label("policies", exact=False).first.check()
    expect(page).to_have_url(re.compile("folder=policies"))
    expect(page.locator(".state h2")).to_have_text("Nothing found")
    page.go_back()
    expect(page.locator(".hit")).to_have_count(10)
    assert page.locator("input[name=folder]:checked").input_value() == ""
    page.locator(".hit-link").nth(3).click()
    expect(page.locator("#source-title")).to_be_visible()
    expect(page).to_have_url(re.compile("source=notes"))
    page.go_back()
    expect(page.locator("#panel")).to_be_hidden()
    expect(page.locator(".hit")).to_have_count(10)
    page.go_forward()
    expect(page.locator("#source-title")).to_be_visible()


def test_filters_have_counts_and_leave_ten_results_when_so_many_match(page: Any, url: str) -> None:
    page.goto(f"{url}/?q=gadget")
    notes = page.locator(".choice", has=page.locator("input[name=folder][value=notes]"))
    expect(notes.locator(".n")).to_have_text("15")
    notes.click()
    expect(page.locator("#filter-form .count strong")).to_have_text("15")
    expect(page.locator(".hit")).to_have_count(10)
    assert all(text.startswith("notes/") for text in page.locator(".hit-link").all_inner_texts())
    page.locator(".more a").click()
    expect(page.locator(".hit")).to_have_count(12)
    page.locator("#filter-form a[data-clear]").click()
    expect(page.locator("#filter-form .count strong")).to_have_text("20")
    page.locator("button[data-since='2025-01-01']").click()
    expect(page.locator("#filter-form .count strong")).to_have_text("1")
    page.locator("button[data-since='']").click()
    expect(page.locator("#filter-form .count strong")).to_have_text("20")
    search(page, "days")
    page.locator(".choice", has=page.locator('input[name=tag][value*="returns"]')).click()
    expect(page.locator(".hit-link").first).to_contain_text("returns.md")
    assert {text for text in page.locator(".hit-link").all_inner_texts()} == {"policies/returns.md"}
    page.locator("input[name=since]").fill("2025-01-01")
    expect(page.locator(".state h2")).to_have_text("Nothing found")


# ---------------------------------------------------------------- sources


def open_first(page: Any, url: str, words: str, name: str) -> None:
    page.goto(f"{url}/?q={words}")
    page.locator(".hit-link", has_text=name).first.click()
    expect(page.locator("#source-title")).to_contain_text(name)


def test_a_pdf_opens_at_its_page_as_a_picture_beside_its_text(page: Any, url: str) -> None:
    open_first(page, url, "noise+cancelling", "manual.pdf")
    expect(page.locator(".turn")).to_contain_text("Page 2 of 3")
    expect(page.locator(".source-text mark")).to_contain_text("38 hours")
    assert page.locator(".page-mark").count() >= 1
    picture = page.locator(".page-image image").get_attribute("href")
    assert page.evaluate("async (src) => { const i = new Image(); i.src = src; await i.decode(); return i.naturalWidth }", picture) >= 1000
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".turn")).to_contain_text("Page 3 of 3")
    expect(page.locator(".source-text")).to_contain_text("Call us")


def test_rows_open_as_a_table_with_the_row_marked(page: Any, url: str) -> None:
    open_first(page, url, "ORD-0047", "orders.csv")
    expect(page.locator("tr.passage .row-number")).to_have_text(["47"])
    expect(page.locator("tr.passage")).to_contain_text("ORD-0047")
    expect(page.locator("#panel thead")).to_contain_text("city")
    page.get_by_role("link", name="After").click()
    expect(page.locator(".turn")).to_contain_text("of 120")
    expect(page.locator("#panel")).to_contain_text("ORD-0100")


def test_markdown_opens_rendered_with_the_passage_marked(page: Any, url: str) -> None:
    open_first(page, url, "opened+headphones", "returns.md")
    expect(page.locator(".markdown strong")).to_have_text("headphones")
    expect(page.locator(".markdown mark").first).to_be_visible()
    assert "hygiene seal" in " ".join(page.locator(".markdown mark").all_inner_texts())
    assert page.locator(".markdown table").count() == 1
    page.locator(".related summary").click()
    expect(page.locator(".related-body a").first).to_be_visible()


def test_word_and_text_files_open_as_text(page: Any, url: str) -> None:
    open_first(page, url, "badge+Olga", "guide.docx")
    expect(page.locator(".source-text mark").first).to_contain_text("badge from Olga on Monday & sign")
    open_first(page, url, "tripod", "call.txt")
    expect(page.locator(".source-text mark").first).to_contain_text("wobbling tripod")


def test_a_hostile_document_is_shown_as_text(page: Any, url: str) -> None:
    page.goto(f"{url}/?q=zebra")
    expect(page.locator(".hit").first).to_be_visible()
    expect(page.locator("#results")).to_contain_text("<script>")
    for name, words in (("hostile.md", "zebra crossing"), ("hostile.csv", "=cmd|zebra")):
        page.locator(".hit-link", has_text=name).first.click()
        expect(page.locator("#source-title")).to_contain_text(name)
        expect(page.locator(".source")).to_contain_text(words)
        assert (
            page.locator(
                "#panel a[href^=javascript], #panel a[href^=data], #panel script, #panel [onload], #panel [onerror], #panel .markdown img"
            ).count()
            == 0
        )
    page.get_by_text("click me").or_(page.locator("body")).first.click()  # wherever it is, nothing happens (see `tab`)
    page.goto(f"{url}/?q=%3Cscript%3Ewindow.hacked%3D1%3C%2Fscript%3E%22%3E%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E")
    expect(page.locator("#results[aria-busy=false]")).to_be_visible()


# ---------------------------------------------------------------- answers


def test_an_answer_streams_and_its_marks_open_the_source(page: Any, url: str, model: Model) -> None:
    model.go.clear()
    try:
        page.goto(url)
        page.locator("#q").fill(QUESTION)
        page.keyboard.press("Control+Enter")
        expect(page.locator(".answer-text")).to_contain_text("within 14 days")  # the first sentence is there …
        assert "30 days" not in page.locator(".answer-text").inner_text()  # … while the model has not written the second
    finally:
        model.go.set()
    expect(page.locator(".answer-text")).to_contain_text("within 30 days")
    expect(page.locator(".mode")).to_contain_text("Written by llama3.1")
    expect(page).to_have_url(re.compile("/ask\\?q=Within"))
    page.locator(".answer a.cite").first.click()
    expect(page.locator("#source-title")).to_contain_text("returns.md")
    expect(page.locator(".markdown mark").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    assert page.evaluate("document.activeElement.className") == "cite"


def test_a_follow_up_keeps_the_conversation_until_it_is_reset(page: Any, url: str) -> None:
    page.goto(f"{url}/ask?q=Within+how+many+days+can+opened+headphones+be+returned%3F")
    expect(page.locator(".turn-item .how")).to_have_count(1)
    page.locator("#q").fill("and unopened ones?")
    page.keyboard.press("Enter")
    expect(page.locator(".turn-item .how")).to_have_count(2)
    expect(page.locator(".rewritten").first).to_contain_text("Within how many days can unopened headphones be returned?")
    page.go_back()  # an answered question is shown again, not asked again
    expect(page.locator(".turn-item .how")).to_have_count(2)
    page.reload()
    expect(page.locator(".turn-item .how")).to_have_count(2)
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn-item")).to_have_count(0)
    assert page.locator("#q").input_value() == ""


def test_an_answer_can_be_stopped_and_asked_again(page: Any, url: str, model: Model) -> None:
    model.go.clear()
    try:
        page.goto(f"{url}/ask?q=Within+how+many+days+can+opened+headphones+be+returned%3F")
        expect(page.locator(".answer-text")).to_contain_text("within 14 days")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".answer.failed .mode")).to_have_text("Stopped")
    finally:
        model.go.set()
    page.get_by_role("button", name="Ask again").click()
    expect(page.locator(".turn-item .how")).to_have_count(1)


def test_what_is_not_there_is_a_result_of_its_own(page: Any, url: str, model: Model) -> None:
    model.text = "I don't know."
    try:
        page.goto(f"{url}/ask?q=Who+repairs+the+charging+cable+of+the+Kestrel%3F")
        expect(page.locator(".answer.none .mode")).to_contain_text("Not in your documents")
        expect(page.locator(".nearest .hit").first).to_be_visible()
        assert page.locator(".answer a.cite").count() == 0
    finally:
        model.text = REPLY


def test_a_table_answer_shows_query_rows_and_a_chart(page: Any, url: str) -> None:
    page.goto(f"{url}/ask?q=What+is+the+total+amount+per+month%3F&kind=table&other=1")  # what is no filter is not sent
    expect(page.locator(".mode")).to_contain_text("Calculated from the table")
    expect(page.locator(".chart polyline")).to_be_visible()
    expect(page.locator(".turn-body .grid tbody tr")).to_have_count(12)
    expect(page.locator(".sql code")).to_contain_text("SELECT")
    expect(page.locator(".stands")).to_contain_text("120 records of sales/2024/orders.csv")
    page.goto(f"{url}/ask?q=How+many+orders+per+city%3F")
    expect(page.locator(".chart rect.bar").first).to_be_visible()
    page.goto(f"{url}/ask?q=How+many+orders+are+from+Berlin%3F")
    expect(page.locator(".answer-text").first).to_contain_text("40")


# ---------------------------------------------------------------- documents


def test_indexing_shows_its_progress_and_uploads_are_found(page: Any, url: str, site: tuple[str, Service], tmp_path: Path) -> None:
    page.goto(f"{url}/documents")
    expect(page.locator("#document-list .note")).to_contain_text("20 of 20")
    (tmp_path / "walrus.md").write_text("# Walrus\n\nThe walrus eats clams.\n", encoding="utf-8")
    tries: list[str] = []

    def busy(route: Any) -> None:
        tries.append(route.request.method)
        told = {"error": "TooManyRequests", "message": "Too many", "remedy": ""}
        route.fulfill(status=429, headers={"Retry-After": "1"}, json=told) if len(tries) == 1 else route.continue_()

    page.route("**/api/upload*", busy)
    page.locator("#files").set_input_files(tmp_path / "walrus.md")
    expect(page.locator("#uploads .good")).to_have_text("walrus.md: uploaded")
    assert tries == ["PUT", "PUT"]  # it came again when the server said so
    expect(page.locator("#run-text")).to_contain_text("Done: 1 new")
    expect(page.locator("#document-list .note")).to_contain_text("21 of 21")
    drop = """text => { const data = new DataTransfer(); data.items.add(new File([text], "walrus.md"));
        document.getElementById("drop").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true })) }"""
    page.evaluate(drop, "dropped")
    expect(page.locator("#uploads .bad")).to_contain_text("already")
    assert (site[1].config.data.directory / "walrus.md").read_text(encoding="utf-8").startswith("# Walrus")
    page.locator("#find").fill("walrus")
    expect(page.locator("#document-list tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Index now").click()
    expect(page.locator("#run-text")).to_contain_text("Done: 0 new")
    search(page, "clams") if page.locator("#results").count() else page.goto(f"{url}/?q=clams")
    expect(page.locator(".hit-link").first).to_contain_text("walrus.md")
    site[1].config.data.directory.joinpath("walrus.md").unlink()
    site[1].index()


def test_a_run_under_way_is_followed_and_can_be_stopped(
    page: Any, url: str, site: tuple[str, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hybrid_rag.errors import Cancelled
    from hybrid_rag.records import Progress

    def slow(paths: object = None, *, verify: bool = False, progress: Any = None, cancel: Any = None) -> None:
        for n in range(600):
            progress(Progress("read", n, 600, remaining_seconds=60.0))
            if cancel():
                raise Cancelled("stopped")
            threading.Event().wait(0.05)

    monkeypatch.setattr(site[1].background, "_run", slow)
    page.goto(f"{url}/documents")
    page.get_by_role("button", name="Index now").click()
    expect(page.locator("#run-text")).to_contain_text("Reading: ")
    expect(page.locator("#run-text")).to_contain_text("left")
    page.reload()  # who comes later sees the same run
    expect(page.locator("#run-text")).to_contain_text("Reading: ")
    expect(page.locator("#index-now")).to_be_disabled()
    assert page.evaluate("document.getElementById('run-bar').value") >= 0
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#run-text")).to_contain_text("Stopped; what was done is kept.")
    expect(page.locator("#index-now")).to_be_enabled()


# ---------------------------------------------------------------- keyboard, phone, dark


def test_everything_can_be_done_with_the_keyboard(page: Any, url: str) -> None:
    page.goto(f"{url}/?q=gadget")
    expect(page.locator(".hit")).to_have_count(10)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("[...document.querySelectorAll('.hit-link')].indexOf(document.activeElement)") == 1
    page.keyboard.press("Enter")
    expect(page.locator("#source-title")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.getElementById('panel').contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    assert page.evaluate("[...document.querySelectorAll('.hit-link')].indexOf(document.activeElement)") == 1
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.locator("#theme").focus()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.locator("input[name=kind][value='']").focus()
    page.keyboard.press("ArrowDown")
    expect(page).to_have_url(re.compile("kind=t"))
    expect(page.locator("input[name=kind]:checked")).to_be_focused()


def wide(page: Any) -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_it_works_at_the_width_of_a_phone(browser: Any, url: str) -> None:
    with tab(browser, viewport=PHONE, has_touch=True) as page:
        for path in ("", "/?q=gadget", "/documents", "/statistics", "/ask?q=What+is+the+total+amount+per+month%3F"):
            page.goto(url + path)
            page.wait_for_load_state("networkidle")
            assert wide(page) <= 0, path
        page.goto(f"{url}/?q=ORD-0047")
        expect(page.locator("#filter-form")).to_be_hidden()
        page.locator("#filter-toggle").tap()
        expect(page.locator("#filter-form")).to_be_visible()
        page.locator("#filter-toggle").tap()
        page.locator(".hit-link").first.tap()
        expect(page.locator("tr.passage")).to_be_visible()
        box = page.locator("#panel").bounding_box()
        assert box["width"] == PHONE["width"] and wide(page) <= 0
        assert page.evaluate("document.querySelector('main').inert")
        page.get_by_role("button", name="Close the source").tap()
        expect(page.locator("#panel")).to_be_hidden()
        assert not page.evaluate("document.querySelector('main').inert")


def test_dark_follows_the_system_and_the_choice_is_kept(browser: Any, url: str) -> None:
    def brightness(page: Any) -> int:
        return page.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)"
        )

    with tab(browser, color_scheme="dark") as page:
        page.goto(url)
        assert brightness(page) < 150
        page.locator("#theme").click()
        assert brightness(page) > 600
        page.reload()
        assert brightness(page) > 600
    with tab(browser, color_scheme="light") as page:
        page.goto(url)
        assert brightness(page) > 600


# ---------------------------------------------------------------- accessibility


RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def axe_violations(page: Any, rules: list[str] = RULES) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"runOnly": rules}).response["violations"]
    return [f"{v['id']}: {v['help']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}" for v in found for node in v["nodes"]]


STATES = {
    "start": ("/", None),
    "results": ("/?q=days", None),
    "nothing": ("/?q=xyzzyplugh", None),
    "source": ("/?q=opened+headphones&source=policies/returns.md&start=120&end=200", "#source-title"),
    "page of a PDF": ("/?q=noise&source=manual.pdf&page=2", ".page-image"),
    "rows": ("/?q=ORD-0047&source=sales/2024/orders.csv&rows=47", "tr.passage"),
    "answer": ("/ask?q=What+is+the+total+amount+per+month%3F", ".how"),
    "quoted": ("/ask?q=Within+how+many+days+can+opened+headphones+be+returned%3F", ".how"),
    "not there": ("/ask?q=What+is+the+colour+of+number+ORD-9999%3F", ".how"),
    "documents": ("/documents", None),
    "statistics": ("/statistics", None),
}


IN_DARK = ("results", "rows", "quoted", "documents")


def test_axe_finds_nothing(browser: Any, url: str) -> None:
    """All rules in light; in dark only the colours differ."""
    found = {}
    with tab(browser) as page:
        for name, (path, wanted) in STATES.items():
            page.emulate_media(color_scheme="light")
            page.goto(url + path)
            if wanted:
                page.wait_for_selector(wanted)
            if page.locator(".why summary").count():
                page.locator(".why summary").first.click()
            violations = axe_violations(page)
            if name in IN_DARK:
                page.emulate_media(color_scheme="dark")
                violations += axe_violations(page, ["color-contrast"])
            if violations:
                found[name] = violations
    assert found == {}


def test_axe_finds_nothing_on_a_phone_and_at_the_door(browser: Any, url: str, site: tuple[str, Service]) -> None:
    with tab(browser, viewport=PHONE) as page:
        page.goto(f"{url}/?q=days")
        page.locator("#filter-toggle").click()
        assert axe_violations(page) == []
    with served(site[1], token="a-token-that-nobody-guesses") as guarded, tab(browser) as page:
        page.goto(f"{guarded}/?q=days")
        expect(page).to_have_url(re.compile("/login$"))
        assert axe_violations(page) == []
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("not the token")
        page.get_by_label("Token").fill("a-token-that-nobody-guesses")
        page.keyboard.press("Enter")
        expect(page.locator(".start h2")).to_contain_text("Search")
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_url(re.compile("/login$"))
