"""Run the examples in docs/errors/ and write their output into the pages. `script/docs --examples [CODE…]` runs this.

A section contains the files of a small project and one block of commands. The first line of each file contains its
name. Files that begin with #! are executable. Each section runs in a new project.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/errors"
SECTION = re.compile(r"^## (?=SC\d{4} )", re.M)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NAME = re.compile(r"^(?:#!.*\n)?[#;] (\S+)\n")
COMMAND = re.compile(r"^\$ (.+)\n", re.M)
PLAIN = re.compile(r"statecfg [^|;&<>$()`]*")  # a command that needs no shell

# A function that runs `statecfg` with arguments, a directory and an environment. It returns stdout and stderr, merged.
Runner = Callable[[list[str], Path, dict[str, str]], str]


def refreshed(text: str, run: Runner | None = None, codes: Collection[str] = ()) -> str:
    """Return a page with the current output of its commands.

    :param text: the page
    :param run: the function that runs commands that need no shell
    :param codes: the error codes whose sections change; empty for all
    """
    head, *sections = SECTION.split(text)

    def refresh(part: str) -> str:
        return section(part, run) if not codes or part[:6] in codes else part

    with ThreadPoolExecutor(max(2, len(os.sched_getaffinity(0)))) as pool:
        return "## ".join([head, *pool.map(refresh, sections)])


def section(text: str, run: Runner | None) -> str:
    """Return a section with the current output of its commands."""
    with tempfile.TemporaryDirectory() as root:
        project = Path(root) / "home/ann/shop"
        project.mkdir(parents=True)
        (project / "statecfg.toml").touch()
        program = Path(root) / "statecfg"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m statecfg "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        for language, content in BLOCK.findall(text):
            name = NAME.match(content)
            if language not in ("console", "text") and name:
                (project / name[1]).parent.mkdir(parents=True, exist_ok=True)
                (project / name[1]).write_text(content, encoding="utf-8")
                (project / name[1]).chmod(0o755 if content.startswith("#!") else 0o644)
        return BLOCK.sub(lambda block: console(block, Path(root), project, run), text)


def console(block: re.Match[str], root: Path, project: Path, run: Runner | None) -> str:
    """Return a block of commands with their current output. Other blocks stay unchanged."""
    if block[1] != "console":
        return block[0]
    lines = []
    for command in COMMAND.findall(block[2]):
        lines += [f"$ {command}", *output(command, root, project, run).splitlines()]
    return "\n".join(["```console", *lines, "```"])


def output(command: str, root: Path, project: Path, run: Runner | None) -> str:
    """Return the output of a command in a project, with the paths and the user that readers would see."""
    home = root / "home/ann"
    environment = {
        "PATH": f"{root}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        # In an empty cache, each command that runs would prepare the executor's source again.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(home / ".cache")),
        "USER": "ann",
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "COLUMNS": "120",
        "STATECFG_STATE_DIR": str(root / "state"),
    }
    if run and PLAIN.fullmatch(command):
        shown = run(shlex.split(command)[1:], project, environment)
    else:
        shown = subprocess.run(
            ["bash", "-c", f"umask 022\n{{ {command}\n}} 2>&1"],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=300,
        ).stdout
    return shown.replace(str(root), "").replace(f"of user {os.geteuid()}", "of user 1000")


def run(codes: Collection[str]) -> None:
    """Update the pages whose output has changed, and print their paths.

    :param codes: the error codes whose examples run; empty for all
    """
    pages = {page: page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md"))}
    known = {part[:6] for text in pages.values() for part in SECTION.split(text)[1:]}
    unknown = sorted(set(codes) - known)
    if unknown:
        raise SystemExit(f"docs/errors/ has no section for {', '.join(unknown)}")
    for page, before in pages.items():
        after = refreshed(before, codes=codes)
        if after != before:
            page.write_text(after, encoding="utf-8")
            sys.stdout.write(f"wrote {page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    run(sys.argv[1:])
