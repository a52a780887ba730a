"""What a run says about the files it read: through the configuration, the report and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hybrid_rag import open_service
from hybrid_rag.records import FileReport, IndexReport
from tests.support.files import aes_pdf, docx, p, pdf, r

HUNGRY = '''
import time
class Hungry:
    """Takes more memory than it may."""
    def __init__(self, path): self.path = path
    def lazy_load(self):
        hoard = [b"x" * 20_000_000 for _ in range(30)]
        time.sleep(60); yield
class Slow:
    def __init__(self, path): self.path = path
    def lazy_load(self):
        time.sleep(60); yield
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    (data / "good.txt").write_text("the good file", encoding="utf-8")
    return data


def index(folder: Path, **keys: object) -> dict[str, FileReport]:
    settings = [f"data.directory={folder}", f"vector_store.persist_directory={folder.parent / 'index'}", "embedding.provider=none"]
    with open_service(settings=[*settings, *(f"{key.replace('__', '.')}={json.dumps(value)}" for key, value in keys.items())]) as service:
        report = service.index()
        kept = service.report()
    assert kept is not None
    assert {f.source: f.reason for f in kept.files} == {f.source: f.reason for f in report.files}
    return {file.source: file for file in report.files}


def test_each_limit_has_a_key_and_names_it_as_the_remedy(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "greedy_loaders.py").write_text(HUNGRY, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    (folder / "large.txt").write_text("x" * 1_200_000, encoding="utf-8")
    pdf(folder / "long.pdf", [f"the text of page {i}" for i in range(1, 6)])
    docx(folder / "bomb.docx", p(r("a" * 3_000_000)))
    (folder / "a.hungry").write_text("x", encoding="utf-8")
    loaders = {".hungry": "greedy_loaders:Hungry"}
    limits = {"max_file_mb": 1, "max_pages": 3, "max_unpacked_mb": 2, "max_memory_mb": 300}
    files = index(folder, loaders=loaders, **{f"document_processing__{key}": value for key, value in limits.items()})
    found = {source: (file.status, file.reason, file.remedy) for source, file in files.items()}
    assert found == {
        "good.txt": ("read", "", ""),
        "large.txt": (
            "not read",
            "The file has 1.1 MB, more than the limit of 1 MB.",
            "Raise document_processing.max_file_mb, or split the file.",
        ),
        "long.pdf": ("partly", "Only the first 3 of 5 pages were read.", "Raise document_processing.max_pages."),
        "bomb.docx": (
            "not read",
            "The DOCX unpacks to 2.9 MB, more than the limit of 2 MB.",
            "Raise document_processing.max_unpacked_mb if you trust it.",
        ),
        "a.hungry": (
            "not read",
            "Reading the file needs more than 300 MB of memory.",
            "Raise document_processing.max_memory_mb, or split the file.",
        ),
    }
    (folder / "b.slow").write_text("x", encoding="utf-8")
    slow = index(folder, loaders={**loaders, ".slow": "greedy_loaders:Slow"}, document_processing__max_seconds=3)["b.slow"]
    assert (slow.status, slow.reason, slow.remedy) == (
        "not read",
        "Reading took longer than 3 seconds.",
        "Raise document_processing.max_seconds.",
    )


def test_a_raised_limit_reads_again_what_it_had_cut_short(folder: Path) -> None:
    pdf(folder / "long.pdf", [f"the text of page {i}" for i in range(1, 6)])
    docx(folder / "large.docx", p(r("a" * 3_000_000)))
    first = index(folder, document_processing__max_pages=3, document_processing__max_unpacked_mb=2)
    assert {source: file.status for source, file in first.items()} == {"good.txt": "read", "long.pdf": "partly", "large.docx": "not read"}
    again = index(folder)
    assert {source: (file.status, file.change) for source, file in again.items()} == {
        "good.txt": ("read", "unchanged"),
        "long.pdf": ("read", "changed"),
        "large.docx": ("read", "changed"),
    }


def test_one_bad_file_harms_no_other_and_its_error_is_never_indexed(folder: Path) -> None:
    whole = docx(folder / "whole.docx", p(r("the contract"))).read_bytes()
    (folder / "~$whole.docx").write_bytes(b"\x05Ann" + bytes(100))
    (folder / "old.docx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    (folder / "half.docx").write_bytes(whole[: len(whole) // 2])
    (folder / "cut.pdf").write_bytes(pdf(folder / "whole.pdf", ["the first page"]).read_bytes()[:200])
    aes_pdf(folder / "empty_password.pdf", empty_password=True)
    aes_pdf(folder / "locked.pdf", empty_password=False)
    files = index(folder)
    status = {source: file.status for source, file in files.items()}
    assert status == {
        "good.txt": "read", "whole.docx": "read", "whole.pdf": "read", "empty_password.pdf": "read",
        "old.docx": "not read", "half.docx": "not read", "cut.pdf": "not read", "locked.pdf": "not read",
    }  # fmt: skip
    assert all(file.reason and file.remedy and not file.chunks for file in files.values() if file.status == "not read")
    assert "password" in files["locked.pdf"].reason
    assert "old or encrypted Office document" in files["old.docx"].reason
    with open_service(
        settings=[f"data.directory={folder}", f"vector_store.persist_directory={folder.parent / 'index'}", "embedding.provider=none"]
    ) as service:
        assert {hit.source for hit in service.search("damaged encrypted zip archive Office", mode="keyword").hits} == set()


def test_the_report_on_the_command_line_is_complete(folder: Path) -> None:
    (folder / "a.csv").write_text("a;b\n1;2\n3;4;5\n", encoding="cp1252")
    (folder / "b.csv").write_bytes("name;city\nAnn;Köln\n".encode("cp1252"))
    pdf(folder / "scan.pdf", ["", "a page with text"])
    (folder / "bad.docx").write_bytes(b"no archive")
    with zipfile.ZipFile(folder / "book.docx", "w") as archive:
        archive.writestr("xl/workbook.xml", "x")
    (folder / ".hidden.txt").write_text("x", encoding="utf-8")
    settings = (f"data.directory={folder}", f"vector_store.persist_directory={folder.parent / 'index'}", "embedding.provider=none")
    arguments = [part for setting in settings for part in ("--set", setting)]

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "hybrid_rag", *words, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False, cwd=folder.parent)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = json.loads(run("index", "--json"))
    assert json.loads(run("report", "--json")) == first
    report = IndexReport.from_dict(first)
    files = {file.source: file for file in report.files}
    assert (report.counts["read"], report.counts["partly"], report.counts["not read"]) == (3, 1, 2)
    assert (files["a.csv"].rows, files["b.csv"].rows, files["scan.pdf"].pages) == (2, 1, 2)
    assert (files["b.csv"].encoding, files["b.csv"].dialect) == ("cp1252", 'delimiter semicolon, quote "')
    assert "row 2" in files["a.csv"].notices[0].message
    assert [(s.path, s.reason) for s in report.skipped] == [(".hidden.txt", "it is hidden")]
    shown = run("report")
    for word in ("scan.pdf", "page 1", "bad.docx", "book.docx", "Excel", "ocr"):
        assert word in shown
    for file in report.files:
        if file.status != "read":
            assert file.reason in shown
            assert file.remedy in shown
