"""The table of the built-in node types, `resources/index/types.py`, from the files in `resources/`.

Run this file to write the table, for example after adding a node type. `script/docs` writes it, too.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = '''\
"""The built-in node types: their packages, and their names for type checkers. Made from the files by script/docs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
'''
# How a file defines the node type that it is named after.
DEFINITIONS = {".py": r"(?m)^@node_type.*\ndef {}\(", ".hy": r"(?m)^\(node-type {}\s"}


def found(directory: Path) -> dict[str, tuple[str, str]]:
    """Return node type → (its package below a directory, the suffix of its file); "" for the directory itself."""
    types = {}
    for suffix, definition in DEFINITIONS.items():
        for path in directory.rglob(f"*{suffix}"):
            if re.search(definition.format(path.stem), path.read_text(encoding="utf-8")):
                types[path.stem] = ".".join(path.relative_to(directory).parts[:-1]), suffix
    return dict(sorted(types.items()))


def imported(module: str, names: str) -> str:
    """Return an import as `ruff format` writes it in a block."""
    line = f"    from {module} import {names}\n"
    return line if len(line) <= 121 else f"    from {module} import (\n        {names},\n    )\n"


def table(directory: Path) -> str:
    """Return the text of the table of the node types in a directory."""
    types = found(directory)
    # The types in Hy have a stub, `_hy.pyi`.
    homes = sorted(
        (".".join(filter(None, (package, name))), name) for name, (package, suffix) in types.items() if suffix == ".py"
    )
    lines = [imported(f"statecfg.resources.{home}", f"{name} as {name}") for home, name in homes]
    rows = [f'    "{name}": "{package}",\n' for name, (package, _) in types.items()]
    about = "# Node type → the package in `statecfg.resources` that contains its module."
    return "".join([HEAD, *lines, f"\n{about}\nPACKAGES = {{\n", *rows, "}\n"])


if __name__ == "__main__":
    (ROOT / "resources/index/types.py").write_text(table(ROOT / "resources"), encoding="utf-8")
