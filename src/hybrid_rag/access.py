"""Who may reach a server of ours: which names mean this machine only, and which tokens let others in.

Both servers, the page and MCP over HTTP, are judged by these, so that neither is laxer than the other.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets

from hybrid_rag.errors import ConfigError

SHORTEST_TOKEN = 16  # characters


def is_loopback(host: str) -> bool:
    """True for the name and the addresses that only this machine can reach; IPv6 addresses with or without brackets.

    Names below ``localhost`` are not among them: whether they lead here depends on the resolver.
    """
    name = host.casefold().rstrip(".")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]").partition("%")[0]).is_loopback
    except ValueError:
        return False


def check_listening(section: str, host: str, token: str | None) -> None:
    """May a server listen there? ``section``: of the configuration, "web" or "mcp".

    Raises ConfigError when others could reach it without a token, or with one that can be guessed.
    """
    remedy = f"Set it, for instance: HYBRID_RAG__{section.upper()}__TOKEN={secrets.token_urlsafe(24)}"
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise ConfigError(f"{section}.token has {len(token)} characters; {SHORTEST_TOKEN} are needed.", remedy)
    if token is None and not is_loopback(host):
        raise ConfigError(
            f"{section}.token is not set, and {host} can be reached from other machines.", f"{remedy}, or listen on 127.0.0.1."
        )


def bears(header: str, token: str) -> bool:
    """Is the value of an Authorization header ``Bearer`` and the token? Compared in constant time.

    ``header``: as ASGI servers give it, bytes read as Latin-1; a token with other letters is sent as UTF-8.
    """
    scheme, _, given = header.partition(" ")
    return scheme.casefold() == "bearer" and hmac.compare_digest(given.strip().encode("latin-1", "replace"), token.encode())
