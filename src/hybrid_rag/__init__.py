"""hybrid-rag: answers from a folder of documents and tables, with citations that code has checked.

>>> from hybrid_rag import open_service
>>> with open_service("config/config.yaml") as service:  # doctest: +SKIP
...     service.index()
...     print(service.ask("How long can opened headphones be returned?").answer)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybrid_rag.errors import HybridRagError
    from hybrid_rag.filters import Filters
    from hybrid_rag.service import Service, open_service

__all__ = ["Filters", "HybridRagError", "Service", "open_service"]

_HOMES = {"Filters": "filters", "HybridRagError": "errors", "Service": "service", "open_service": "service"}


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: ``import hybrid_rag`` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hybrid_rag' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"hybrid_rag.{_HOMES[name]}"), name)
