"""Symbolic modes: statecfg computes the same modes as the host's chmod."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from statecfg.remote.graph import symbolic_modes

TEXTS = [
    "u=rw,go=r",
    "a+x",
    "a-x",
    "g=u",
    "o=g,g-w",
    "u+s,g-s",
    "o+t",
    "o=",
    "u=rwx,go=rX",
    "ug=rw",
    "a=r",
    "u-w+x",
    "g+s",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_result_is_that_of_chmod(text: str, tmp_path: Path) -> None:
    modes = {}
    for mode in (0o000, 0o400, 0o644, 0o640, 0o751, 0o1777, 0o2755, 0o4711, 0o6600, 0o7777):
        for path in (tmp_path / f"{mode:o}", tmp_path / f"{mode:o}.d"):
            path.mkdir() if path.suffix else path.touch()
            path.chmod(mode)
            modes[path] = mode
    subprocess.run(["chmod", text, *modes], check=True)
    for path, mode in modes.items():
        expected = symbolic_modes.applied(text, mode, path.is_dir())
        assert f"{path.stat().st_mode & 0o7777:04o}" == f"{expected:04o}", f"{text} on {mode:04o} of {path.name}"
