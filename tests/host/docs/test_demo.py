"""`script/demo` on a fresh clone: it shows what it promises and leaves nothing behind, even if it is interrupted."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.lab import processes
from tests.lab.fixtures import NOT_RUN

PLANS = "Plan: 5 to add, 0 to change, 0 to destroy."
AGAIN = "Nothing to do: 5 resources as defined."


def environment(scratch: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("STATECFG_", "PYTHON"))}
    own = {"TMPDIR": str(scratch), "XDG_CACHE_HOME": str(scratch.parent / "cache")}
    # pip would compile all modules of all packages. Python compiles the few that the demo imports.
    return {**kept, **own, "PIP_NO_COMPILE": "1"}


def clone(target: Path) -> None:
    """Copy all tracked files and all untracked files that git does not ignore; keep links."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if os.path.lexists(ROOT / name):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)


def scratch_directory(tmp_path: Path) -> Path:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return scratch


def machine_ledger() -> list[tuple[str, int]]:
    """Return the names and modification times of the files in this machine's own ledger directory."""
    folder = Path("/var/lib/statecfg")
    return sorted((path.name, path.stat().st_mtime_ns) for path in folder.iterdir()) if folder.exists() else []


def mentions(text: str) -> list[int]:
    """Return the processes whose command line contains the text."""
    found = []
    for pid in processes.parents():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has ended since the listing
        if text.encode() in line and pid != os.getpid():
            found.append(pid)
    return found


def check_output(said: str) -> None:
    """Check that a demo began without resources: locally, and over SSH if there is an sshd."""
    local, _, remote = said.partition("Over SSH" if "Over SSH: left out" in said else "The same over SSH")
    assert local.count(PLANS) == 1 and local.count(AGAIN) == 3
    assert "- Hello from another user.\n        + Hello from statecfg.\n" in local
    if shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin"):
        assert remote.count(PLANS) == 1 and remote.count(AGAIN) == 1


def test_demo_works_on_a_fresh_clone_and_leaves_nothing_behind_when_interrupted(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "0"]
    ask = [*pip, "--dest", str(tmp_path), "toposort"]
    asked = subprocess.run(ask, capture_output=True, text=True)
    if asked.returncode:
        pytest.skip(f"{NOT_RUN}pip has nowhere to get packages from: {asked.stderr.strip()[-200:]}")
    scratch, before = scratch_directory(tmp_path), machine_ledger()
    clone(tmp_path / "clone")
    # Both outputs go into one pipe, so that reading one can't be held up by the other.
    given = {"cwd": tmp_path / "clone", "env": environment(scratch), "text": True, "stdin": subprocess.DEVNULL}
    given |= {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}

    def nothing_is_left() -> None:
        assert not list(scratch.iterdir()) and not (tmp_path / "cache/statecfg").exists()
        assert machine_ledger() == before

    done = subprocess.run(["script/demo"], timeout=300, **given)
    assert done.returncode == 0, done.stdout
    check_output(done.stdout)
    nothing_is_left()
    # The demo installs only what statecfg itself needs.
    listed = subprocess.run([tmp_path / "clone/.venv/bin/python", "-c", "import pytest"], capture_output=True)
    assert listed.returncode != 0

    if not shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin"):
        pytest.skip(f"{NOT_RUN}there is no sshd (Debian: openssh-server)")
    demo = subprocess.Popen(["script/demo"], **given)
    try:
        assert demo.stdout is not None
        said = ""
        for line in demo.stdout:
            said += line
            if "Again, over SSH" in line:
                break
        local, _, remote = said.partition("The same over SSH")
        assert (local.count(PLANS), local.count(AGAIN), remote.count(PLANS)) == (1, 3, 1), said
        assert mentions(str(scratch)), said
        demo.send_signal(signal.SIGTERM)
        said += demo.communicate(timeout=60)[0]
        assert demo.returncode == 130, said
    finally:
        if demo.poll() is None:
            processes.end(demo)
    processes.wait_until(lambda: not mentions(str(scratch)), 30, "the processes of the demo to end")
    nothing_is_left()
    first, second = (set(re.findall(rf"{re.escape(str(scratch))}/[\w.-]+", text)) for text in (done.stdout, said))
    assert len(first) == len(second) == 1 and first != second  # each shows only its own directory
