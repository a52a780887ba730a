"""The API against its own description: whatever Schemathesis makes of it, no answer is an error of the server, or of another form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from hybrid_rag.web.app import create_app
from tests.support.web import service_over, write_collection

CHECKS = [response_schema_conformance, status_code_conformance, content_type_conformance]
EXAMPLES = 8  # of each operation and mode
LEAST_OPERATIONS = 20


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    folder: Path = tmp_path_factory.mktemp("schema")
    write_collection(folder)
    with service_over(folder, "retrieval.rerank=off", "web.upload=true", "tables.max_seconds=2") as service:
        schema = schemathesis.openapi.from_asgi("/api/openapi.json", create_app(service), headers={"host": "127.0.0.1"})
        yield [found.ok() for found in schema.get_all_operations()]


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.name.lower())
def test_no_answer_is_an_error_of_the_server(operations: list[Any], mode: GenerationMode) -> None:
    """Requests as described, and requests that break the description."""
    assert len(operations) >= LEAST_OPERATIONS
    seen: set[int] = set()
    checked = 0
    for operation in operations:
        strategy = operation.as_strategy(generation_mode=mode)

        @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(case=strategy)
        def check(case: Any) -> None:
            answer = case.call(headers={"host": "127.0.0.1"})
            seen.add(answer.status_code)
            assert answer.status_code < 500, f"{case.as_curl_command()}\n{answer.text}"
            case.validate_response(answer, checks=CHECKS)
            if answer.status_code >= 400:
                assert set(answer.json()) == {"error", "message", "remedy"}, f"{case.as_curl_command()}\n{answer.text}"

        try:
            check()
        except Unsatisfiable:
            continue  # nothing can be wrong in a request that has no parameter
        checked += 1
    assert checked >= LEAST_OPERATIONS // 2
    assert (422 if mode is GenerationMode.NEGATIVE else 200) in seen, f"the requests reached too little: {sorted(seen)}"
