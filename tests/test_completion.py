"""Completion of verbs and options in bash, zsh and fish."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def statecfg(*arguments, **environ):
    return subprocess.run(
        [sys.executable, "-m", "statecfg", *arguments], env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_asks_our_program(shell):
    given = statecfg("completion", shell)
    assert given.returncode == 0, given.stderr
    assert f"_STATECFG_COMPLETE={shell}_complete" in given.stdout
    assert "statecfg" in given.stdout


def test_the_bash_script_is_sound(tmp_path):
    bash = shutil.which("bash")
    assert bash is not None
    script = tmp_path / "complete.bash"
    script.write_text(statecfg("completion", "bash").stdout)
    checked = subprocess.run([bash, "-n", str(script)], capture_output=True, text=True, timeout=30, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("words", "number", "expected", "unexpected"),
    [
        ("statecfg pl", "1", "plain,plan", "plain,apply"),
        ("statecfg plan --ex", "2", "plain,--extra-vars", "plain,--forks"),
        ("statecfg graph --format m", "3", "plain,mermaid", "plain,svg"),
        ("statecfg completion ", "2", "plain,zsh", "plain,plan"),
    ],
)
def test_words_are_completed(words, number, expected, unexpected):
    given = statecfg(_STATECFG_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=number)
    assert expected in given.stdout.splitlines()
    assert unexpected not in given.stdout.splitlines()
    assert given.returncode == 0
