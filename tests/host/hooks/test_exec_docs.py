"""The page on exec hooks is correct: its commands work, and its sample input matches real input."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.machine.process import PATH
from statecfg.store import hosts
from statecfg.store.database import Store
from tests import ROOT
from tests.host.hooks.exec.workshop import BOOTED, Workshop
from tests.host.hooks.test_exec_counter import needs_jq
from tests.host.hooks.test_hooks_of_local_runs import Site
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
    with store.transaction() as connection:
        hosts.installed_in(connection, store.project, "web1", "p.yml")
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


# Reports what the program gets: its input about the resource, its environment, and its Python.
TELLS = """#!/usr/bin/env python3
import importlib.util, json, os, sys
given = json.load(sys.stdin)
own = {"program": os.path.realpath(sys.executable), "virtual": sys.prefix != sys.base_prefix}
own["statecfg"] = importlib.util.find_spec("statecfg") is not None
print(json.dumps({"output": {"resource": given.get("resource"), "env": dict(os.environ), "python": own}}))
"""


@pytest.fixture
def told(tmp_path: Path) -> dict[tuple[str, str], Any]:
    """Return what programs report that an apply calls; by event, and by where they run."""
    site = Site(tmp_path)
    playbook = site.root / "site.yml"
    playbook.write_text(playbook.read_text() + "    tags: [edge]\n")
    for event in ("pre-reconcile", "post-create"):
        for where in ("controller", "host"):
            site.hook(f"{event}-{where}", event, TELLS, where=where)
    site.run("apply site.yml --yes")
    events = site.data("hook log")["events"]
    return {(entry["event"], entry["hook"].rpartition("-")[2]): entry["msg"] for entry in events}


def test_the_page_describes_what_a_real_program_gets(told: dict[tuple[str, str], Any]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = page.partition("Resource events add `resource`:\n\n")[2].partition("\n\n")[0]
    keys = re.findall(r"^\| `(\w+)` \|", table, re.M)
    names = re.findall(r"`(\w+)`", page.partition("Its environment contains only ")[2].partition(". It reads")[0])
    system = os.path.realpath(shutil.which("python3", path=PATH) or "")
    assert len(told) == 4 and "outcome" in keys and "missing before its turn" in table
    for (event, _), given in told.items():
        early = event == "pre-reconcile"
        resource = given["resource"]
        assert resource.keys() == set(keys) - ({"outcome"} if early else set())
        assert (resource["tags"], resource["playbook"]) == (["edge"], "work/site.yml")
        assert (resource["state"], resource.get("outcome")) == (("", None) if early else ("PRE_CREATED", "changed"))
        assert given["env"].keys() == set(names)
        assert given["env"]["HOME"] == pwd.getpwuid(os.geteuid()).pw_dir
        assert given["python"] == {"program": system, "virtual": False, "statecfg": False}
