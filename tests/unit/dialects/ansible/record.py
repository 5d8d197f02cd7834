"""Run Ansible on inventories: record its output for the tests, or compare it with statecfg.

    python -m tests.unit.dialects.ansible.record                # write the recorded.json of each case
    python -m tests.unit.dialects.ansible.record 01-plain       # only of this one
    python -m tests.unit.dialects.ansible.record --check        # compare Ansible, the recordings and statecfg
    python -m tests.unit.dialects.ansible.record --check PATH   # compare Ansible and statecfg, for any inventory

It needs Ansible 2.19 (`ansible-inventory` in PATH). The tests compare statecfg with the recordings, without Ansible.
Several paths are one inventory of several sources. It exits with 1 if there are differences.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from statecfg.problems import InvalidInput
from tests.unit.dialects.ansible import comparing

# Variables that Ansible adds to each host.
ADDED = ("inventory_dir", "inventory_file")


def ansible(sources: Sequence[Path]) -> dict[str, Any]:
    """Return the output of `ansible-inventory --list` for an inventory.

    :param sources: files and directories
    :raises subprocess.CalledProcessError: Ansible can't read the inventory
    """
    arguments = [part for source in sources for part in ("-i", str(source.absolute()))]
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "HOME": empty, "ANSIBLE_LOCAL_TEMP": empty, "ANSIBLE_DEPRECATION_WARNINGS": "0"}
        found = subprocess.run(
            ["ansible-inventory", *arguments, "--list"],
            cwd=empty,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    output: dict[str, Any] = json.loads(found.stdout)
    output["_meta"].pop("profile", None)
    for values in output["_meta"]["hostvars"].values():
        for name in ADDED:
            values.pop(name, None)
    return output


def record(case: Path) -> None:
    """Write the output of Ansible for a case."""
    output = json.dumps(ansible(comparing.sources(case)), indent=1, sort_keys=True, ensure_ascii=False)
    (case / "recorded.json").write_text(output + "\n")


def check(name: str, expected: dict[str, Any], sources: Sequence[Path], directory: Path) -> bool:
    """Print what differs between Ansible and statecfg; return whether they agree, or differ as the docs say."""
    codes: list[str] = []
    try:
        found = list(comparing.differences(expected, comparing.load(sources, directory)))
    except InvalidInput as error:
        codes = sorted(item.code for item in error.problems)
        found = [f"refused: {item.locations[0] if item.locations else ''} {item.detail}" for item in error.problems]
    if codes and codes == sorted(comparing.REFUSED.get(name, [])):
        print(f"{name}: refused, as the docs say")
        return True
    print(f"{name}: {'equal' if not found else f'{len(found)} differences'}")
    print(*(f"  {line}\n" for line in found), sep="", end="")
    return not found


def check_cases(chosen: Sequence[Path]) -> bool:
    """Compare Ansible, its recordings and statecfg for cases; return whether they agree, or differ as the docs say."""
    agree = True
    for case in chosen:
        sources, expected = comparing.sources(case), comparing.recorded(case)
        now = ansible(sources)
        if now != expected:
            print(f"{case.name}: Ansible's output is no longer the recorded one")
        agree = check(case.name, now, sources, case) and now == expected and agree
    return agree


def check_paths(sources: Sequence[Path]) -> bool:
    """Compare Ansible and statecfg for an inventory of any sources; return whether they agree."""
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        lines = "".join(f"  - {json.dumps(str(source.absolute()))}\n" for source in sources)
        (directory / "both.yml").write_text(f"sources:\n{lines}")
        return check(" ".join(map(str, sources)), ansible(sources), sources, directory)


def main(words: Sequence[str]) -> int:
    """Record or compare; return the exit code."""
    names = [word for word in words if word != "--check"]
    chosen = [case for case in comparing.cases() if not names or case.name in names]
    if "--check" in words:
        agree = check_cases(chosen) if chosen else check_paths([Path(name) for name in names])
        return 0 if agree else 1
    for case in chosen:
        record(case)
        print(case.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
