"""Who may reach a server: what means this machine, where a token is needed, and which header bears it."""

from __future__ import annotations

import re

import pytest

from hybrid_rag.access import bears, check_listening, is_loopback
from hybrid_rag.errors import ConfigError

TOKEN = "a-token-that-nobody-guesses"
HERE = ("127.0.0.1", "127.8.9.1", "::1", "[::1]", "::1%lo", "localhost", "LOCALHOST", "localhost.")
ELSEWHERE = (
    "0.0.0.0",
    "::",
    "[::]",
    "192.168.1.4",
    "10.0.0.1",
    "example.com",
    "host",
    "",
    "localhost.example.com",
    "x.localhost",
    "127.1.evil.org",
)


@pytest.mark.parametrize("host", HERE)
def test_this_machine_alone_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    check_listening("web", host, None)
    check_listening("web", host, TOKEN)


@pytest.mark.parametrize("section", ["web", "mcp"])
@pytest.mark.parametrize("host", ELSEWHERE)
def test_elsewhere_than_here_a_token_is_needed(section: str, host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(ConfigError, match=rf"{section}\.token is not set") as error:
        check_listening(section, host, None)
    suggested = re.search(rf"HYBRID_RAG__{section.upper()}__TOKEN=(\S+?),", error.value.remedy)
    assert suggested and len(suggested[1]) >= 24
    check_listening(section, host, TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("token", ["", "short", "x" * 15])
def test_a_token_that_can_be_guessed_is_refused(host: str, token: str) -> None:
    with pytest.raises(ConfigError, match=f"mcp.token has {len(token)} characters"):
        check_listening("mcp", host, token)


@pytest.mark.parametrize(
    ("header", "good"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN} ", True),
        (f"Bearer {TOKEN}x", False),
        (f"Basic {TOKEN}", False),
        (TOKEN, False),
        ("Bearer", False),
        ("Bearer ", False),
        ("", False),
    ],
)
def test_only_the_whole_token_opens(header: str, good: bool) -> None:
    assert bears(header, TOKEN) is good


def test_a_token_with_other_letters_is_read_as_utf8() -> None:
    token = "ein geheimes Wört-7"
    assert bears(f"Bearer {token}".encode().decode("latin-1"), token)
    assert not bears(f"Bearer {token}", token)
