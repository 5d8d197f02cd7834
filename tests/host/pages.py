"""Reads the marked code blocks of the documentation pages, and runs their commands.

A comment in the line before a block marks it:

- `<!-- test: file PATH -->`: the block is the content of the file PATH in the reader's project.
- `<!-- test: run -->`, `<!-- test: run 6 -->`: the block has commands, each after a `$`. Lines below a command are its
  expected output. The number is the exit code of the last command; the default is 0.
- any other text after `test:` is a name by which a test finds the block.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests import ROOT
from tests.host.command import shell_start
from tests.host.preloaded import CACHE

_BLOCK = re.compile(
    r"(?:^<!-- test: (?P<mark>.*?) -->\n)?^(?P<fence>```+)(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$", re.M | re.S
)
_TIMES = re.compile(r"\bin \d+(\.\d+)? s\b")


@dataclass(frozen=True)
class Block:
    """A code block: its page, line, mark ("" without a mark), language and text."""

    page: Path
    line: int
    mark: str
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return all pages, the README first."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the code blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("fence")) + 1
        yield Block(page, line, found["mark"] or "", found["language"], found["text"])


class Reader:
    """A reader who follows a page, with a home, a working directory, and `statecfg` on the path."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.place = home / "work"
        self.programs = home / "bin"
        for folder in (self.place, self.programs, home / ".ssh", home / "ledger"):
            folder.mkdir(parents=True)
        self.program("statecfg", f'exec {shlex.join(shell_start())} "$@"')

    def program(self, name: str, line: str) -> None:
        """Write a program to a directory on the path."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        path.chmod(0o755)

    def follow(self, page: Path, scratch: Path | None = None) -> int:
        """Follow a page block by block; return the number of commands that ran.

        :param page: the page
        :param scratch: the directory to use where the page says /tmp, so that tests can run side by side
        """
        count = 0
        for block in blocks(page):
            if scratch is not None:
                block = replace(block, text=block.text.replace("/tmp/", f"{scratch}/"))
            word, _, rest = block.mark.partition(" ")
            if word == "file":
                path = self.place / rest
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
            elif word == "run":
                count += self.run(block, int(rest or 0))
        return count

    def run(self, block: Block, code: int) -> int:
        """Run a block's commands; the last one must exit with `code`. Return the number of commands."""
        commands = re.split(r"^\$ ", block.text, flags=re.M)[1:]
        for number, text in enumerate(commands):
            command, _, expected = text.partition("\n")
            if command.startswith("cd "):
                self.place = (self.place / command[3:].strip()).resolve()
                continue
            done = self.shell(command)
            wanted = code if number == len(commands) - 1 else 0
            assert done.returncode == wanted, f"{block}: {command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
            if expected:
                shown = _TIMES.sub("in N s", done.stdout or done.stderr)
                assert shown.strip() == _TIMES.sub("in N s", expected).strip(), f"{block}: {command}:\n{shown}"
        return len(commands)

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run one line in the reader's shell."""
        argv = ["bash", "-c", command]
        return subprocess.run(
            argv,
            cwd=self.place,
            env=self._environment(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    def started(self, command: str) -> subprocess.Popen[str]:
        """Start one line in the reader's shell; the caller can read its output while it runs."""
        argv = ["bash", "-c", command]
        return subprocess.Popen(
            argv,
            cwd=self.place,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "XDG_CACHE_HOME": CACHE,
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "LANG": "C.UTF-8",
            "STATECFG_STATE_DIR": str(self.home / "ledger"),
        }
