"""Every error code has a section with its meaning, an example whose output is real, and a fix."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from statecfg.problems import CODES
from tests import ROOT
from tests.host.command import run
from tests.host.preloaded import CACHE

PAGES = sorted((ROOT / "docs/errors").glob("*.md"))
NOT_RUN = {"SC0115", "SC0507", "SC0754"}  # two take long, the third needs a service without hosts
WARNING = "SC0608"  # warnings show no code


def examples() -> Any:
    """Import the program behind script/docs --examples as a module."""
    spec = importlib.util.spec_from_file_location("error_examples", ROOT / "script/error_examples.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sections() -> dict[str, str]:
    """Return the section of each error code."""
    parts = (part for page in PAGES for part in examples().SECTION.split(page.read_text(encoding="utf-8"))[1:])
    return {part[:6]: part for part in parts}


def test_each_error_code_has_a_meaning_and_a_fix() -> None:
    found = sections()
    assert sorted(found) == sorted(CODES)
    for code, (summary, meaning) in CODES.items():
        assert found[code].startswith(f"{code} {summary}\n\n{meaning}\n"), code
        assert re.search(r"^\*\*Fix:\*\* \S.*\.$", found[code], re.M), code


@pytest.mark.parametrize("code", CODES)
def test_each_example_shows_only_its_own_error_code(code: str) -> None:
    (block,) = re.findall(r"^```(?:console|text)\n(.*?)^```$", sections()[code], re.M | re.S)
    assert set(re.findall(r"\[(SC\d{4})\]", block)) == ({code} if code != WARNING else set())
    assert ("```console" in sections()[code]) == (code not in NOT_RUN)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_print_what_their_page_shows(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)
    text = page.read_text(encoding="utf-8")
    assert examples().refreshed(text, started) == text, "run script/docs --examples"


def test_only_the_examples_of_the_given_codes_run() -> None:
    page = "# Errors\n\n## SC0001 one\n\n```console\n$ echo new\nold\n```\n\n"
    page += page.partition("\n\n")[2].replace("SC0001 one", "SC0002 two")
    after = examples().refreshed(page, codes=["SC0002"])
    assert after == page[::-1].replace("old"[::-1], "new"[::-1], 1)[::-1]


def started(arguments: list[str], cwd: Path, environ: dict[str, str]) -> str:
    """Run `statecfg`; return its stdout and stderr, merged."""
    return run(arguments, cwd, environ, timeout=300, merged=True).stdout
