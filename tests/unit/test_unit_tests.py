"""Unit tests use no processes, no network and no sleep, and import nothing from tests that use them."""

from __future__ import annotations

import ast
import multiprocessing
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.each import each
from tests.unit.sources import ROOMS, walk

UNIT = Path(__file__).parent
# `tests.host`, `from tests import host`: a tree for each file would take much longer than the search.
NAMED = re.compile(r"\btests\b[\s.\\]*(import|host|lab|long)\b")


def with_socket(use: Callable[[socket.socket], None]) -> None:
    with socket.socket() as opened:
        use(opened)


@each(
    "use",
    [
        lambda: subprocess.run(["true"]),
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
        os.fork,
        lambda: multiprocessing.get_context("spawn").Process(target=print).start(),
        lambda: with_socket(lambda opened: opened.bind(("127.0.0.1", 0))),
        lambda: with_socket(lambda opened: opened.connect(("127.0.0.1", 9))),
        lambda: time.sleep(0),
    ],
    ids=["run", "spawn", "fork", "multiprocessing", "listen", "connect", "sleep"],
)
def test_unit_test_fails_if_it_uses_processes_network_or_sleep(use: Callable[[], Any]) -> None:
    with pytest.raises(pytest.fail.Exception, match="move it to tests/host/"):
        use()


def imported(path: Path) -> set[str]:
    """Return the modules that a file imports; an empty set if its text names no tests in other directories."""
    text = path.read_text(encoding="utf-8")
    nodes = walk(ast.parse(text)) if NAMED.search(text) else []
    plain = {item.name for node in nodes if isinstance(node, ast.Import) for item in node.names}
    return plain | {
        f"{node.module}.{item.name}" for node in nodes if isinstance(node, ast.ImportFrom) for item in node.names
    }


def test_unit_tests_import_nothing_from_host_tests() -> None:
    for path in UNIT.rglob("*.py"):
        above = [name for name in imported(path) if name.startswith(("tests.host", "tests.lab", "tests.long"))]
        assert not above, f"{path.relative_to(ROOT)} imports {above}"


@each("layout", ["unit", "long"])
def test_tests_are_laid_out_like_the_rooms(layout: str) -> None:
    folders = {path.name for path in (ROOT / "tests" / layout).iterdir() if (path / "__init__.py").exists()}
    assert folders - {room.partition(".")[0] for room in ROOMS} == set()


def test_every_test_file_is_in_unit_long_or_host() -> None:
    tests = ROOT / "tests"
    assert {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py")} == {"unit", "long", "host"}
