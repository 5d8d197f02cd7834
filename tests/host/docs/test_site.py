"""The site: script/docs builds it without a warning, and its search finds every page without a network."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests import ROOT
from tests.lab.fixtures import NOT_RUN


@pytest.fixture
def environment() -> None:
    """Skip the test if script/docs would build .venv again while other tests use it."""
    with (ROOT / "pyproject.toml").open("rb") as project:
        wanted = subprocess.run(["cksum"], stdin=project, capture_output=True, text=True, check=True).stdout.strip()
    made = ROOT / ".venv/made-for"
    if not made.exists() or made.read_text().rpartition(" ")[0] != wanted:
        pytest.skip(f"{NOT_RUN}.venv is older than pyproject.toml: run script/setup test")


@pytest.mark.usefixtures("environment")
def test_the_site_has_every_page_and_an_offline_search(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = subprocess.run(["script/docs", site], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    assert {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")} >= {*pages, Path("index")}
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")  # a script, because pages may load scripts from a file
    assert all(f'"{page}"' in index for page in pages)
    texts = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.html"))
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//[^"]*"', texts)
