"""The command line on a terminal: questions, live drawing and interrupts."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from tests.host.cli.test_cli import Run


class Terminal:
    """The command on its own terminal, which is 80 columns wide by default."""

    def __init__(self, run: Run, *arguments: str, columns: int = 80) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        environ = {**run.environ, "TERM": "xterm-256color"}
        for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CI"):
            environ.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "statecfg", *arguments], cwd=run.base, stdin=slave, stdout=slave, stderr=slave,
            env=environ, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)
        self.shown = ""

    def until(self, text: str, seconds: float = 30) -> str:
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            assert self.read(), self.shown
        return self.shown

    def read(self) -> bool:
        """Read the command's output; return False once the command has ended."""
        try:
            if select.select([self.master], [], [], 0.1)[0]:
                self.shown += os.read(self.master, 65536).decode("utf-8", "replace")
        except OSError:  # Linux raises this if no process has the other end open
            return False
        return True

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        deadline = time.monotonic() + 30
        while self.read():
            assert time.monotonic() < deadline, self.shown
        return self.process.wait(timeout=30)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def start(*arguments, **more):
        opened.append(Terminal(run, *arguments, **more))
        return opened[-1]

    run = Run(tmp_path)
    start.run = run
    yield start
    for each in opened:
        each.close()


def test_apply_shows_the_plan_and_asks_before_changes(terminal):
    began = time.monotonic()
    screen = terminal("apply", "hello.py")
    shown = screen.until("Apply these changes? [y/N]")
    assert "\x1b[32m" in shown
    assert "3 to add, 0 to change, 0 to destroy." in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert not terminal.run.scratch.exists()
    time.sleep(3)  # the time until the user answers is not part of the run
    screen.type("y\n")
    assert screen.end() == 0, screen.shown
    assert (terminal.run.scratch / "hello.txt").exists()
    took = re.search(r"on 1 host in ([\d.]+) s\.", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.shown))
    assert took is not None and float(took[1]) <= time.monotonic() - began - 2.9


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x03", "\x04"])
def test_any_answer_but_yes_changes_nothing(terminal, answer):
    screen = terminal("apply", "hello.py")
    screen.until("[y/N]")
    screen.type(answer)
    assert screen.end() == 130, screen.shown
    assert "Nothing was changed." in screen.shown
    assert not terminal.run.scratch.exists()


def test_prune_shows_what_it_removes_and_asks(terminal):
    run = terminal.run
    assert run("apply", "hello.py", "--yes").returncode == 0
    text = (run.base / "hello.py").read_text()
    (run.base / "hello.py").write_text(re.sub(r", file\(.*other.*\)\]", "]", text))
    for answer, code in (("n\n", 130), ("y\n", 0)):
        assert (run.scratch / "other.txt").exists()
        screen = terminal("prune", "hello.py")
        shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.until("Remove these resources? [y/N]"))
        assert "0 to add, 0 to change, 1 to destroy." in shown
        screen.type(answer)
        assert screen.end() == code, screen.shown
    assert sorted(path.name for path in run.scratch.iterdir()) == ["hello.txt"]
    screen = terminal("prune", "hello.py")
    assert screen.end() == 0, screen.shown
    assert "[y/N]" not in screen.shown


def test_apply_asks_nothing_if_there_is_nothing_to_do(terminal):
    assert terminal.run("apply", "hello.py", "--yes").returncode == 0
    screen = terminal("apply", "hello.py")
    assert screen.end() == 0, screen.shown
    assert "[y/N]" not in screen.shown


def test_live_rows_show_the_running_command_and_its_output(terminal):
    (terminal.run.base / "slow.py").write_text(
        "from statecfg import play\nfrom statecfg.resources import command\n\n@play(hosts='@local')\ndef p(host):\n"
        "    return command('migrate', shell='for i in 1 2 3 4 5 6; do echo step $i; sleep 0.3; done')\n"
    )
    screen = terminal("apply", "slow.py", "--yes", columns=160)
    screen.until("command:migrate")
    screen.until("step 3")
    assert screen.end() == 0, screen.shown
    assert screen.shown.count("\x1b[?25h") >= 1  # the cursor is shown again


def test_ctrl_c_restores_the_terminal(terminal):
    (terminal.run.base / "slow.py").write_text(
        "from statecfg import play\nfrom statecfg.resources import command\n\n@play(hosts='@local')\ndef p(host):\n"
        "    return command('wait', shell='sleep 3', always=True)\n"
    )
    screen = terminal("apply", "slow.py", "--yes")
    screen.until("command:wait")
    os.kill(screen.process.pid, signal.SIGINT)
    screen.until("Stopping")
    assert screen.end() == 130, screen.shown
    assert "\x1b[?25h" in screen.shown
    assert "Traceback" not in screen.shown
