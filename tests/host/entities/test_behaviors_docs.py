"""The page on behaviors is correct: its commands run, its playbook is the shipped one, and its verifier works."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests import ROOT
from tests.host.entities.invoking import Site, invocation
from tests.host.hooks.http.servers import answer, serving
from tests.host.pages import Reader, blocks

PAGE = ROOT / "docs/behaviors.md"


def test_commands_on_the_behaviors_page_work_as_written(tmp_path: Path) -> None:
    scratch = Path("/tmp/statecfg-sites")
    assert not scratch.exists()
    try:
        assert Reader(tmp_path / "home").follow(PAGE) > 10
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def test_the_page_shows_the_shipped_playbook() -> None:
    (shown,) = [block.text for block in blocks(PAGE) if block.mark == "file playbooks/entity-site.yml"]
    shipped = (ROOT / "playbooks/entity-site.yml").read_text(encoding="utf-8")
    assert "".join(line for line in shipped.splitlines(keepends=True) if not line.startswith("#")) == shown


def test_the_pages_verifier_accepts_only_genuine_requests(tmp_path: Path) -> None:
    (text,) = [block.text for block in blocks(PAGE) if block.mark == "verify"]
    names: dict[str, Any] = {}
    exec(text, names)  # the code on the page
    with serving(answer(200, "ok")) as server:
        execution = {"type": "WebHook", "href": server.url, "_internal_key": "both know it"}
        assert Site(tmp_path).run(invocation(execution, {"title": "Blog"})).ok
    (asked,) = server.asked
    path = urlsplit(server.url).path
    assert names["is_genuine"]("both know it", "127.0.0.1", path, asked.headers, asked.body)
    assert not names["is_genuine"]("nobody knows", "127.0.0.1", path, asked.headers, asked.body)
    assert not names["is_genuine"]("both know it", "127.0.0.1", path, asked.headers, asked.body + b" ")
