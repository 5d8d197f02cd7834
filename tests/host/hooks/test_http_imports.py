"""The timeout of an HTTP hook does not include the time for our own imports and certificates."""

from __future__ import annotations

import importlib.abc
import ssl
import sys
import time
from typing import Any

import pytest

from statecfg.hooks.http import calls as http_hooks
from tests.host.hooks.http.servers import answer, serving

SECONDS = 2.0  # the longest time that a call may take
SLOW = 2.2


class Slow(importlib.abc.MetaPathFinder):
    """Delays the import of httpx."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == "httpx":
            time.sleep(SLOW)


def test_a_slow_import_does_not_use_up_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "httpx"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Slow(), *sys.meta_path])
    _is_answered()


def test_slowly_loaded_certificates_do_not_use_up_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    load = ssl.create_default_context

    def slowly(*given: Any, **named: Any) -> ssl.SSLContext:
        time.sleep(SLOW)
        return load(*given, **named)

    monkeypatch.setattr(ssl, "create_default_context", slowly)
    _is_answered()


def _is_answered() -> None:
    with serving(answer(200, "{}")) as server:
        reply = http_hooks.call(server.url, SECONDS, "graph-children", http_hooks.PRE_RECONCILE, {})
    assert reply.error is None
