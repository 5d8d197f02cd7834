"""Parts of the transports that need a shell, a resolver or time."""

from __future__ import annotations

import random
import shutil
import subprocess
import threading
import time

import pytest

from statecfg.transport.dial import LoginGate, resolve
from statecfg.transport.quoting import command_line

# sh and bash are always there. Other shells are tested if they are installed.
SHELLS = ["sh", "bash", *(s for s in ("dash", "zsh", "fish", "tcsh", "csh", "ksh", "mksh") if shutil.which(s))]


def awkward_words() -> list[str]:
    chance = random.Random(1)
    letters = "ab '\\!\"$`*~{}()[]?#^;&|<>%=@,\t"
    return ["", "it's", "\\", "!x", "$HOME", "=ls", "%1", "-n", "~", "ä", "x\\'y"] + [
        "".join(chance.choice(letters) for _ in range(12)) for _ in range(40)
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_passes_quoted_words_unchanged(shell: str) -> None:
    words = awkward_words()
    line = command_line(["printf", "%s\\n", *words])
    done = subprocess.run([shell, "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == words


def test_a_gate_limits_visitors_and_lets_in_fewer_after_refusals() -> None:
    door = LoginGate(8)
    inside, most = 0, 0
    lock = threading.Lock()

    def visit(room: int, full: threading.Event) -> None:
        nonlocal inside, most
        with door.enter("h", 60):
            with lock:
                inside += 1
                most = max(most, inside)
                if most >= room:
                    full.set()
            full.wait(20)
            time.sleep(0.01)
            with lock:
                inside -= 1

    def crowd(room: int) -> int:
        nonlocal most
        most, full = 0, threading.Event()
        threads = [threading.Thread(target=visit, args=(room, full)) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return most

    assert crowd(8) == 8
    door.turned_away()
    door.turned_away()
    assert crowd(2) == 2
    for _ in range(20):
        door.let_in()
    assert crowd(8) == 8


def test_ip_addresses_are_resolved_without_a_lookup() -> None:
    assert [a[1][0] for a in resolve("h", "127.0.0.1", 22, 0.0)] == ["127.0.0.1"]
    assert [a[1][0] for a in resolve("h", "::1", 22, 0.0)] == ["::1"]
