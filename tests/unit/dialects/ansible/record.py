"""Record what Ansible makes of the inventories beside this file.

`python record.py` writes a `recorded.json` into each; `python record.py 01-plain` only into that one.

The tests compare statecfg with these recordings, so that they need no Ansible. Run it again after a change of an
inventory, with Ansible 2.19 (`ansible-inventory` in PATH).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# Variables that Ansible adds to each host.
ADDED = ("inventory_dir", "inventory_file")


def sources(case: Path) -> list[Path]:
    """Return the sources of a case: those in its file `sources`, or the only file or directory `inventory` in it."""
    listed = case / "sources"
    if listed.exists():
        return [case / line for line in listed.read_text().split()]
    found = [path for path in sorted(case.rglob("*")) if path.name.split(".")[0] in ("hosts", "inventory")]
    return [next(path for path in found if path.is_file() or path.parent == case)]


def cases() -> list[Path]:
    """Return the directories of all cases."""
    return sorted(path for path in HERE.iterdir() if path.name[:2].isdigit())


def record(case: Path) -> None:
    """Write the output of `ansible-inventory --list` for a case."""
    arguments = [part for source in sources(case) for part in ("-i", str(source))]
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "HOME": empty, "ANSIBLE_LOCAL_TEMP": empty, "ANSIBLE_DEPRECATION_WARNINGS": "0"}
        found = subprocess.run(  # Ansible, by hand
            ["ansible-inventory", *arguments, "--list"],  # the Ansible in PATH
            cwd=empty,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    output = json.loads(found.stdout)
    output["_meta"].pop("profile", None)
    for values in output["_meta"]["hostvars"].values():
        for name in ADDED:
            values.pop(name, None)
    (case / "recorded.json").write_text(json.dumps(output, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for one in cases():
        if sys.argv[1:] and one.name not in sys.argv[1:]:
            continue
        record(one)
        print(one.name)
