"""A real client of the API, container-service-extension from PyPI, unmodified, does all that it can."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.entities.model import user_id
from tests import ROOT
from tests.host.server.serving import serving

PYTHON = ROOT / ".venv-cse/bin/python"
NOTE = '''
"""What hooks call: notes that it was called, and by what."""


def note(entity, arguments, context):
    with open("notes", "a") as notes:
        notes.write(f"{context.hook}\\n")
'''


@pytest.fixture(scope="module")
def saw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Give the results of the client, and as `notes` the hooks that ran."""
    if not PYTHON.exists():
        pytest.fail("there is no .venv-cse with container-service-extension: run script/setup test")
    root = tmp_path_factory.mktemp("cse")
    (root / "behaviors").mkdir()
    (root / "behaviors/hooks.py").write_text(NOTE.replace('"notes"', repr(str(root / "notes"))))
    with serving(root) as served:
        given = {"url": served.url, "member": user_id("a-author", "acme"), **served.tokens}
        done = subprocess.run(
            [PYTHON, "-W", "ignore", Path(__file__).with_name("cse_client.py")],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=120,
            cwd=root,
        )
        assert done.returncode == 0, done.stderr
        yield {**json.loads(done.stdout), "notes": (root / "notes").read_text().split()}


def test_client_defines_interfaces_behaviors_and_types(saw: dict[str, Any]) -> None:
    assert saw["interface"] == ["urn:vcloud:interface:cse:k8s:1.0.0", "renamed"]
    assert saw["interfaces"] == ["urn:vcloud:interface:cse:k8s:1.0.0"]
    assert saw["behaviors"] == ["ask", "createCluster", "deleteCluster", "updateCluster"]
    assert saw["type"] == "urn:vcloud:type:cse:nativeCluster:2.1.0"
    assert (saw["types"], saw["latest"]) == ([saw["type"]], "2.1.0")
    assert saw["override"] == [True, True, "mine"]
    assert saw["acls"] == [
        {
            "behaviorId": "urn:vcloud:behavior-interface:ask:cse:k8s:1.0.0",
            "accessLevelId": "urn:vcloud:accessLevel:ReadWrite",
        }
    ]


def test_client_creates_finds_and_resolves_entities(saw: dict[str, Any]) -> None:
    assert saw["created"] == ["success", "executeBehavior"]
    assert (saw["state"], saw["resolved"]) == ("RESOLVED", "RESOLVED")
    assert (saw["by type"], saw["by interface"], saw["by name"]) == ([True], [True], True)
    assert (saw["page"], saw["page of interface"]) == ([1, [True]], 1)
    assert saw["invoked"] == "success"


def test_client_rereads_an_entity_after_a_stale_change(saw: dict[str, Any]) -> None:
    assert saw["stale"] == [2, "c2", "theirs"]


def test_hooks_run_unless_an_administrator_turns_them_off(saw: dict[str, Any]) -> None:
    assert saw["hook"] == ["executeBehavior", "c3"]
    # Two creations, and one update with hooks by the administrator. The author's update can't turn hooks off.
    assert saw["notes"] == ["PostCreate", "PostUpdate", "PostUpdate", "PreDelete", "PostCreate"]


def test_client_gets_only_the_granted_access(saw: dict[str, Any]) -> None:
    assert (saw["before"], saw["not deleted"]) == ("DefEntityServiceError", "DefEntityServiceError")
    assert (saw["after"], saw["changed"]) == ("c3", "c4")


def test_client_deletes_everything_it_created(saw: dict[str, Any]) -> None:
    assert saw["deleted"] == ["success", "deleteDefinedEntity", "DefEntityServiceError"]
    assert (saw["left"], saw["nothing"]) == ([], [[], []])
