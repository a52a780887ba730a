"""The block for clients: it starts this installation, with this configuration, from anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid_rag.config import load
from hybrid_rag.mcp_server.client_config import FILES, block
from hybrid_rag.mcp_server.logs import default_file
from hybrid_rag.service import open_service
from tests.support.mcp_client import SERVER, bare, data_folder, over_stdio, place


def printed(folder: Path, *arguments: str, **environment: str) -> tuple[list[str], str]:
    """Command and arguments that --print-config gives, and what stands on stderr."""
    done = subprocess.run(
        [*SERVER, "--print-config", *arguments],
        cwd=folder,
        env=bare(folder) | environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    server = json.loads(done.stdout)["mcpServers"]["hybrid-rag"]
    return [server["command"], *server["args"]], done.stderr


def test_the_block_starts_the_server_from_anywhere(tmp_path: Path) -> None:
    config = place(tmp_path, {"a.md": "# A\n\nsome words"})
    with open_service(config) as service:
        service.index()
    command, told = printed(config.parent, "--config", config.name, "--set", "mcp.max_result_tokens=4321", HYBRID_RAG__RETRIEVAL__K="1")
    assert command[0] == sys.executable and str(config) in command
    assert {"mcp.max_result_tokens=4321", "retrieval.k=1"} <= set(command)
    assert all(path in told for path in FILES.values())
    with over_stdio(config, command=command) as talk:
        assert talk.call("search_documents", query="words")["hits"][0]["source"] == "a.md"


def test_without_a_configuration_file_the_folders_are_named(tmp_path: Path) -> None:
    config = place(tmp_path, {"a.md": "# A\n\nsome words"})
    folder = config.parent
    command, _ = printed(folder, "--set", "data.directory=doc s", "--set", "embedding.provider=none", "--set", "mcp.token=secret")
    assert {f'data.directory="{data_folder(config)}"', 'embedding.provider="none"'} <= set(command)
    assert f'vector_store.persist_directory="{folder / "chroma_db"}"' in command
    assert not any("secret" in part for part in command)
    read = load(settings=[command[n + 1] for n, part in enumerate(command) if part == "--set"])
    assert read.config.data.directory == data_folder(config)


def test_the_sample_configuration_gives_absolute_paths() -> None:
    found = block(load(Path(__file__).parents[1] / "config" / "config.yaml"))
    arguments = found["mcpServers"]["hybrid-rag"]["args"]
    assert Path(arguments[arguments.index("--config") + 1]).is_absolute()


def test_the_script_is_the_command(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "scripts" / "mcp_server.py"
    assert len(script.read_text(encoding="utf-8").splitlines()) < 30
    with over_stdio(place(tmp_path, {}), command=[sys.executable, str(script)]) as talk:
        assert talk.client.server_info.name == "hybrid-rag"


@pytest.mark.parametrize(("platform", "wanted"), [("darwin", "Library/Logs"), ("linux", ".local/state"), ("win32", "AppData")])
def test_the_log_has_its_place_on_every_system(platform: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    assert wanted in default_file().as_posix()


def test_help_does_not_import_the_protocol() -> None:
    code = "import sys\nfrom hybrid_rag.cli import app\ntry: app(['mcp', '--help'])\nexcept SystemExit: pass\nassert 'mcp' not in sys.modules and 'starlette' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
