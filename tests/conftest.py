"""Shared fixtures, and a guard: a test that reaches beyond this machine fails."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket

import pytest
from hypothesis import settings

settings.register_profile("any machine", deadline=None)  # how long an example takes says nothing about the code
settings.load_profile("any machine")
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
_connect, _connect_ex, _sendto = socket.socket.connect, socket.socket.connect_ex, socket.socket.sendto


class NetworkUsed(AssertionError):
    """A test tried to reach an address outside loopback."""


def _check(sock: socket.socket, address: object) -> None:
    if sock.family == socket.AF_UNIX or not isinstance(address, tuple):
        return
    host = str(address[0])
    if host in ("", "localhost"):
        return
    try:
        inside = ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        inside = False
    if not inside:
        raise NetworkUsed(f"a test tried to reach {address!r}")


def _guarded(original):
    def call(self, *args):
        _check(self, args[-1])
        return original(self, *args)

    return call


def _no_lookup(host, *args, **kwargs):
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost", "0.0.0.0", "::", "testserver") or _is_address(str(name)):
        return _getaddrinfo(host, *args, **kwargs)
    raise NetworkUsed(f"a test tried to look up {name!r}")


def _is_address(name: str) -> bool:
    try:
        return ipaddress.ip_address(name.split("%")[0]).is_loopback
    except ValueError:
        return False


_getaddrinfo = socket.getaddrinfo
socket.socket.connect = _guarded(_connect)
socket.socket.connect_ex = _guarded(_connect_ex)
socket.socket.sendto = _guarded(_sendto)
socket.getaddrinfo = _no_lookup


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the person who runs the tests leaks into them."""
    for name in list(os.environ):
        if name.startswith("HYBRID_RAG__"):
            monkeypatch.delenv(name)


def pytest_configure() -> None:
    """A suite that a shell started in the background ignores Ctrl-C, and so would the programs that its tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
