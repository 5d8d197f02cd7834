"""The page on exec hooks is correct: its commands work, and its sample input matches real input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statecfg.store import hosts
from statecfg.store.database import Store
from tests import ROOT
from tests.host.hooks.exec.workshop import BOOTED, Workshop
from tests.host.hooks.test_exec_counter import needs_jq
from tests.host.pages import Reader, blocks

PAGE = ROOT / "docs/hooks-exec.md"


@needs_jq
def test_the_commands_on_the_page_work(tmp_path: Path) -> None:
    assert Reader(tmp_path / "home").follow(PAGE) > 10


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def test_the_sample_input_has_the_keys_of_real_input(store: Store, tmp_path: Path) -> None:
    shop = Workshop(store, tmp_path / "hooks")
    facts = {"hostname": "h", "macaddress": "52:54:00:30:8e:45", "serialnumber": "s", "uuid": "u"}
    hosts.check_in(store, "web1", facts, "", "")
    hosts.bind(store, "web1", "p.yml")
    hosts.installed(store, "web1", "p.yml")
    shop.simple("h", "#!/bin/sh\nprintf '{\"output\": '; cat; echo }\n")
    record = hosts.get(store, "web1")
    assert record is not None
    judged = shop.engine.run("h", BOOTED, record)
    assert judged is not None
    (sample,) = [json.loads(block.text) for block in blocks(PAGE) if block.language == "json"]
    given = judged.entry["msg"]
    assert {key: set(value) for key, value in given.items()} == {key: set(value) for key, value in sample.items()}
    assert given["node"]["state"].keys() == sample["node"]["state"].keys()
    assert given["node"]["hw_info"].keys() == sample["node"]["hw_info"].keys()
