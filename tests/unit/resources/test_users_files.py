"""Files that users wrote and that root reads in a plan: each is read in little time and memory."""

from __future__ import annotations

import time
from typing import Any

import pytest

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.resources.files.downloads import git_state
from statecfg.resources.packages.languages import venv_extras
from statecfg.resources.shared import places

SECONDS = 5.0  # of processor time; without limits, each case takes hours


def obeyed(files: dict[str, str]) -> list[str]:
    return git_state.obeyed(MemoryMachine(files=dict(files)), "/srv/a")


def test_submodules_of_all_levels_are_found_once() -> None:
    text = '[submodule "b"]\n\tpath = b\n\turl = ../b\n[submodule "b"]\n\tPath= "b"\n[submodule "x"]\n path = ../x\n'
    found = obeyed({"/srv/a/.gitmodules": text, "/srv/a/b/.gitmodules": "path = c d \n"})
    inside = [path for path in found if not path.startswith("/srv/a/.git")]
    assert inside == ["/srv/a/b", "/srv/a/b/.git", "/srv/a/b/c d", "/srv/a/b/c d/.git"]


def test_lists_of_submodules_need_linear_time() -> None:
    begun = time.process_time()
    names = [f"/{'/'.join('a' * depth)}" if depth else "" for depth in range(6)]
    repeated = {f"/srv/a{name}/.gitmodules": "path = a\n" * 200 for name in names}
    assert len(obeyed(repeated)) < 50
    obeyed({"/srv/a/.gitmodules": "\n" * 1_000_000 + "path = x" + " " * 1_000_000 + "y\n"})
    with pytest.raises(CheckError, match="more than 1000 submodules"):
        obeyed({"/srv/a/.gitmodules": "".join(f"path = {number}\n" for number in range(1100))})
    assert time.process_time() - begun < SECONDS


@pytest.mark.parametrize("name", [".git", ".gitmodules"])
def test_a_large_file_of_a_checkout_is_not_read(name: str) -> None:
    with pytest.raises(CheckError, match="has more than 16777216 bytes"):
        obeyed({f"/srv/a/{name}": "x" * (places.MOST_READ + 1)})


def missing(metadata: dict[str, str]) -> bool:
    files: dict[str, Any] = {f"/v/{name}/METADATA": text for name, text in metadata.items()}
    extras = venv_extras.Extras(MemoryMachine(files=files), "3.11", {name: f"/v/{name}" for name in metadata})
    return extras.missing("d0", ["a"])


def test_extras_need_linear_time() -> None:
    def needing(number: int, last: str) -> str:
        needs = "".join(
            f'Requires-Dist: d{number + 1}[{word}]; extra == "{extra}"\n' for word in "ab" for extra in "ab"
        )
        return f"Provides-Extra: a\nProvides-Extra: b\n{last if last else needs}\n\n"

    begun = time.process_time()
    for last, found in (("X: y", False), ('Requires-Dist: gone; extra == "a"', True)):
        assert missing({f"d{number}": needing(number, last if number == 60 else "") for number in range(61)}) is found
    spaces = f'Provides-Extra: a\nRequires-Dist: x; extra == "a"{" " * 500_000}x\n\n'
    assert not missing({"d0": spaces})
    with pytest.raises(CheckError, match="more than 500 extras"):
        missing({f"d{number}": needing(number, "" if number < 399 else "X: y") for number in range(400)})
    assert time.process_time() - begun < SECONDS
