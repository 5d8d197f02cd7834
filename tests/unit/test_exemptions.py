"""Each exemption from ruff and mypy gives its reason on the same line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests import ROOT

FOLDERS = ("statecfg", "resources", "tests", "bench", "script", "playbooks")
# The patterns are split, so that ruff and mypy do not read them as exemptions in this file.
EXEMPTION = re.compile(r"# (?:ruff: )?(?:no" r"qa|type: ig" r"nore)\b")
WITH_REASON = re.compile(r"# (?:ruff: )?(?:no" r"qa: [A-Z]+\d+(?:, [A-Z]+\d+)*|type: ig" r"nore\[[\w, -]+\])  # \w")
RULE = re.compile(r'"[A-Z]+\d*",?')


def files() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (path for path in (ROOT / folder).rglob("*.py") if not path.is_symlink())


def test_an_exemption_in_a_file_names_its_rules_and_its_reason() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if EXEMPTION.search(line) and not WITH_REASON.search(line)
    ]
    assert not bare, "these exemptions need their rules, then `  # ` and the reason:\n" + "\n".join(bare)


def test_an_exemption_for_all_files_states_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lint = tomllib.loads(text)["tool"]["ruff"]["lint"]
    section = text.partition("\nignore = ")[2].partition("\n[tool.mypy]")[0]
    told = [line for line in section.splitlines() if RULE.search(line)]
    assert [line for line in told if not re.search(r" # \w|# `\w", line)] == []
    exempt = [*lint["ignore"], *(rule for rules in lint["per-file-ignores"].values() for rule in rules)]
    assert len(told) == len(exempt), "each rule needs a separate line with its reason"
