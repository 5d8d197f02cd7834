"""The site: script/docs builds it without a warning, and its search finds every page without a network."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests import ROOT


def test_the_site_has_every_page_and_an_offline_search(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = subprocess.run(["script/docs", site], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    assert {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")} >= {*pages, Path("index")}
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")  # a script, which pages may load from a file
    assert all(f'"{page}"' in index for page in pages)
    texts = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.html"))
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//[^"]*"', texts)
