"""The page on HTTP hooks is correct: its service works, its registration is valid, its requests are real."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from statecfg.hooks.http import answers, exchange
from statecfg.hooks.http import calls as http_hooks
from statecfg.hooks.registration import files
from statecfg.hooks.registration.yaml import SPEC_KEYS
from statecfg.playbook.project import Project
from tests import ROOT
from tests.host.hooks.http.projects import Place
from tests.host.hooks.http.servers import answer, serving
from tests.host.pages import Reader, blocks

PAGE = ROOT / "docs/hooks-http.md"


def test_the_examples_on_the_page_work(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "home")
    reader.program("python", f'exec "{sys.executable}" "$@"')
    assert reader.follow(PAGE) == 1
    for path in (reader.place / "hooks", reader.place / "hooks/greeting.yml"):
        path.chmod(path.stat().st_mode & ~0o022)
    (found,) = files.load(Project(reader.place))
    assert found.http is not None and found.http.conditions == ("Greeted",) and found.warnings == ()


def test_the_sample_request_has_the_fields_of_a_real_one(tmp_path: Path) -> None:
    (shown,) = [json.loads(each.text) for each in blocks(PAGE) if '"formFactor"' in each.text]
    place = Place.make(tmp_path)
    with serving(answer(200)) as server:
        place.hook(server.url)
        place.apply()
    place.store.close()
    real = server.asked[0].json()
    assert shown.keys() == real.keys()
    assert shown["object"].keys() == real["object"].keys()
    assert shown["object"]["metadata"].keys() == real["object"]["metadata"].keys()
    assert shown["children"]["file:/etc/motd"].keys() == real["children"]["file:/etc/motd"].keys()


def test_the_page_explains_every_key_of_a_registration() -> None:
    text = PAGE.read_text(encoding="utf-8")
    elsewhere = {"exec", "events", "where"}  # keys of exec hooks
    assert [key for key in SPEC_KEYS if f"spec.{key}" not in text and key not in elsewhere] == []


def test_the_page_states_the_limits_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"| {exchange.CONNECT:.0f} s |" in text and f"| {exchange.MAX_REDIRECTS}, to the same" in text
    sizes = f"{http_hooks.MAX_REPLY >> 20} MiB, {http_hooks.MAX_ERROR >> 10} KiB"
    assert sizes in text and f"{answers.MAX_SHOWN:,} characters" in text
