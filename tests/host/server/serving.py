"""Runs `statecfg serve` in a separate process with its own store, and gives clients with a token of each role."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from statecfg import store
from statecfg.entities.model import PROVIDER
from statecfg.entities.operations import Operations
from tests import ROOT
from tests.lab import processes

ROLES = ("viewer", "author", "administrator")
STARTS = 60.0  # seconds within which a server has to answer
ACCEPT = "application/json;version={}"


@dataclass
class Served:
    """A running server: its URL, its project directory, the URL of its store, and a token for each role."""

    url: str
    root: Path
    store: str
    process: subprocess.Popen[str]
    tokens: dict[str, str] = field(default_factory=dict)

    def client(self, role: str = "administrator", version: str = "37.1", **headers: str) -> httpx.Client:
        """Return a client with the token of a role, or without a token if the role is empty."""
        given = {"Accept": ACCEPT.format(version), **headers}
        if role:
            given["Authorization"] = f"Bearer {self.tokens.get(role, role)}"
        return httpx.Client(
            base_url=self.url, headers=given, timeout=60, verify=False
        )  # plain HTTP: no certificates to load

    def end(self) -> tuple[int, str]:
        """Stop the server like an operator. Return its exit status and its stderr."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


def token(address: str, name: str, role: str, org: str = "") -> str:
    """Create a token of a user directly in the store. Return it."""
    with store.opened(url=address) as opened:
        return Operations(opened).add_token(name, org or (PROVIDER if role == "administrator" else "acme"), role)


def project(root: Path) -> Path:
    """Create an empty project."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "statecfg.toml").write_text('name = "served"\n')
    return root


@contextlib.contextmanager
def serving(root: Path, *options: str, **env: str) -> Iterator[Served]:
    """Serve a project during a with block."""
    project(root)
    address = f"sqlite:///{root}/store.db"
    values = {**os.environ, "PYTHONPATH": str(ROOT), "STATECFG_STORE": address, **env}
    argv = [sys.executable, "-m", "statecfg", "serve", "--port", "0", *options]
    process = subprocess.Popen(
        argv, cwd=root, env=values, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    try:
        served = Served(_address(process), root, address, process)
        served.tokens = {role: token(address, f"a-{role}", role) for role in ROLES}
        yield served
    finally:
        processes.end(process)


def _address(process: subprocess.Popen[str]) -> str:
    """Return the URL that a server prints at its start."""
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=_follow, args=(process.stdout, lines), daemon=True).start()
    end = time.monotonic() + STARTS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(queue.Empty):
            found = re.search(r"serves on (\S+)\. ", lines.get(timeout=0.1))
            if found:
                return found[1]
    process.kill()
    raise AssertionError(f"the server did not start: {process.communicate(timeout=10)[1]}")


def _follow(stream: Any, lines: queue.Queue[str]) -> None:
    for line in stream:
        lines.put(line)
