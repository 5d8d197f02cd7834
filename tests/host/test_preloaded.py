"""A command from the server of preloaded processes behaves like a newly started command."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests import ROOT
from tests.host.command import preloaded, run, shell_start
from tests.lab import processes

PLAYBOOK = """\
import os, sys
from statecfg import play
from statecfg.resources import file

print(os.getcwd(), os.environ.get("WORD"), sys.stdin.read(), sys.argv[1:], sys.path[0], file=sys.stderr)

@play(hosts="@local")
def motd(host):
    return file("{path}", "Hello.\\n")
"""


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    own = {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "STATECFG_STATE_DIR": str(tmp_path / "state")}
    return {**os.environ, **own, **more}


def in_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[[], subprocess.CompletedProcess[str]]
) -> list[tuple[int, str, str]]:
    """Return exit code, stdout and stderr of a command, once preloaded and once as a new process."""
    (tmp_path / "statecfg.toml").touch()
    (tmp_path / "motd.py").write_text(PLAYBOOK.format(path=tmp_path / "motd"))
    both = []
    for value in ("", "1"):
        monkeypatch.setenv("STATECFG_TESTS_START", value)
        done = start()
        both.append((done.returncode, done.stdout, done.stderr))
    return both


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["validate", "motd.py"],
        ["plan", "motd.py", "--detailed-exitcode"],
        ["apply", "motd.py", "--json"],
        ["aply", "motd.py"],
        ["validate", "mtd.py"],
        [],
    ],
)
def test_preloaded_commands_give_the_same_output_and_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str]
) -> None:
    both = in_both_ways(
        tmp_path, monkeypatch, lambda: run(arguments, tmp_path, environ(tmp_path, WORD="said"), "typed")
    )
    assert both[0] == both[1]


@pytest.mark.parametrize("line", ["validate motd.py", "plan motd.py < /dev/null", "aply motd.py"])
def test_shells_give_preloaded_commands_the_same_output_and_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    def started() -> subprocess.CompletedProcess[str]:
        argv = ["sh", "-c", f"echo typed | WORD=said {shlex.join(shell_start())} {line}"]
        return subprocess.run(argv, cwd=tmp_path, env=environ(tmp_path), capture_output=True, text=True)

    both = in_both_ways(tmp_path, monkeypatch, started)
    assert both[0] == both[1]


def test_signals_to_a_command_of_a_shell_reach_the_preloaded_process(tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").touch()
    own = f"import os, time\nopen('{tmp_path}/pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    (tmp_path / "slow.py").write_text(own)
    with subprocess.Popen([*shell_start(), "validate", "slow.py"], cwd=tmp_path, env=environ(tmp_path)) as process:
        processes.wait_until(lambda: (tmp_path / "pid").exists(), 60, "the command to start")
        process.terminate()
        assert process.wait(60)
    pid = int((tmp_path / "pid").read_text())
    processes.wait_until(lambda: not processes.alive(pid), 60, "the command to end")


def test_a_command_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").touch()
    own = f"import os, time\nopen('{tmp_path}/pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    (tmp_path / "slow.py").write_text(own)
    with pytest.raises(subprocess.TimeoutExpired):
        run(["validate", "slow.py"], tmp_path, environ(tmp_path), timeout=5)
    pid = int((tmp_path / "pid").read_text())
    processes.wait_until(lambda: not processes.alive(pid), 60, "the command to end")


@pytest.mark.parametrize("variable", [{"PYTHONOPTIMIZE": "1"}, {"LC_ALL": "C.ISO-8859-1"}, {"WORD": "x" * 200_000}])
def test_preloaded_server_refuses_environments_it_cannot_apply(tmp_path: Path, variable: dict[str, str]) -> None:
    assert preloaded().serves(["--help"], environ(tmp_path), "")
    assert not preloaded().serves(["--help"], environ(tmp_path, **variable), "")
