"""Undo of nodes with secrets without the secrets: the ledger has keyed digests of them, and never looks for masks."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from statecfg import resources
from statecfg.graph.graph import Graph
from tests.host.remote.managed import Machine, Said

SECRET = "s3cret-of-the-database"
PEM = "-----BEGIN KEY-----\nAbCd1234\nEfGh5678\n-----END KEY-----"
LITERAL = "<secret here>"
Make = Callable[[str, str], Graph]


@pytest.fixture
def machine(server: Machine, tmp_path: Path) -> Machine:
    (tmp_path / "host").mkdir()
    found = Machine(tmp_path, server.server)
    found.orders["secrets"] = {"tok": SECRET, "pem": PEM}
    return found


def line(path: str, text: str) -> Graph:
    return resources.line_in_file(path, line=f"token={text} # ours", match="^token=")


def block(path: str, text: str) -> Graph:
    return resources.block_in_file(path, block=f"first\n{text}\nlast", name="b")


def replace(path: str, text: str) -> Graph:
    return resources.replace(path, pattern="^token=.*$", replacement=f"token={text} # ours")


def file(path: str, text: str) -> Graph:
    return resources.file(path, content=f"# all\ntoken={text} # ours\n")


NODES: dict[str, Make] = {"line": line, "block": block, "replace": replace, "file": file}
WAS = "# all\ntoken=former\n"


def only(machine: Machine, *, secrets: bool) -> Said:
    """Remove everything, with a playbook that has other secrets than before."""
    return machine.run(mode="prune", yes=True, secrets={} if secrets else {"other": "another-secret"})


def clean(machine: Machine, said: Said, *secrets: str) -> None:
    """Check that the host neither stores nor reports a secret, except in the file itself."""
    for secret in secrets:
        assert secret not in json.dumps(said.frames, ensure_ascii=False)
        for folder, _, names in os.walk(machine.place):
            assert not [name for name in names if secret.encode() in Path(folder, name).read_bytes()]
    assert "\\ue000" not in json.dumps(said.frames)


@pytest.mark.parametrize("kind", NODES)
@pytest.mark.parametrize("text", [SECRET, LITERAL])
def test_a_node_with_a_secret_is_undone_without_it(machine: Machine, kind: str, text: str) -> None:
    path = machine.folder / "host/f"
    path.write_text(WAS)
    assert machine.run(NODES[kind](str(path), text)).end["status"] == "ok"
    assert text in path.read_text()
    said = only(machine, secrets=True)
    (removed,) = said.part("removals", "layer")
    assert removed["outcome"] == "changed" and not removed.get("leaves"), removed
    assert path.read_text() == WAS and machine.rows() == {}
    clean(machine, said, SECRET)


@pytest.mark.parametrize("kind", NODES)
@pytest.mark.parametrize("text", [SECRET, LITERAL])
def test_what_others_wrote_in_place_of_a_secret_stays(machine: Machine, kind: str, text: str) -> None:
    path = machine.folder / "host/f"
    path.write_text(WAS)
    assert machine.run(NODES[kind](str(path), text)).end["status"] == "ok"
    changed = path.read_text().replace(text, "by-hand")
    path.write_text(changed)
    said = only(machine, secrets=True)
    (removed,) = said.part("removals", "layer")
    assert removed["leaves"] and path.read_text() == changed, removed
    clean(machine, said, SECRET)


def test_a_secret_of_several_lines_is_undone(machine: Machine) -> None:
    path, other = machine.folder / "host/f", machine.folder / "host/g"
    for each in (path, other):
        each.write_text(WAS)
    assert machine.run(block(str(path), PEM), block(str(other), PEM)).end["status"] == "ok"
    other.write_text(other.read_text().replace("EfGh5678", "EfGh5679"))
    said = only(machine, secrets=True)
    assert path.read_text() == WAS and "EfGh5679" in other.read_text()
    leaves = {node["name"]: node.get("leaves") for node in said.part("removals", "layer")}
    assert [bool(each) for each in leaves.values()].count(True) == 1
    clean(machine, said, "AbCd1234")


def test_a_line_that_looks_like_a_mask_keeps_its_difference(machine: Machine) -> None:
    path = machine.folder / "host/f"
    path.write_text(WAS)
    assert machine.run(line(str(path), "<secret goes here>")).end["status"] == "ok"
    (planned,) = machine.run(mode="prune", yes=True).part("removals")
    (change,) = planned["changes"]
    assert "-token=<secret goes here> # ours\n+token=former" in change["diff"]


def test_a_command_whose_undo_looks_like_a_mask_is_undone(machine: Machine) -> None:
    made = machine.folder / "host/made"
    node = resources.command("c", argv=["touch", str(made)], creates=str(made), undo=f"rm {made} # {LITERAL}")
    assert machine.run(node).end["status"] == "ok"
    assert only(machine, secrets=False).end["status"] == "ok"
    assert not made.exists() and machine.rows() == {}


def test_the_key_of_the_digests_is_only_for_its_owner(machine: Machine) -> None:
    """Two hosts have different digests of one secret, so that a digest says nothing without its host's key."""
    path = machine.folder / "host/f"
    path.write_text(WAS)
    said = machine.run(line(str(path), SECRET))
    key = machine.place / "digest.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and len(key.read_bytes()) == 32
    (attrs,) = [json.loads(row["attrs"]) for row in stored(machine)]
    _, (name, ((digest, length),)), _ = attrs["line"]["$hidden"]
    assert (name, length) == ("tok", len(SECRET))
    assert digest not in json.dumps(said.frames) and key.read_bytes().hex() not in json.dumps(said.frames)


def stored(machine: Machine) -> list[sqlite3.Row]:
    database = sqlite3.connect(machine.place / "ledger.db")
    database.row_factory = sqlite3.Row
    try:
        return database.execute("SELECT * FROM resource").fetchall()
    finally:
        database.close()


def as_0_4_0(machine: Machine) -> None:
    """Make the ledger what 0.4.0 would have written: with masks in texts."""
    database = sqlite3.connect(machine.place / "ledger.db")
    for name, text in database.execute("SELECT name, attrs FROM resource").fetchall():
        attrs = json.loads(text)
        for key, value in attrs.items():
            if isinstance(value, dict) and "$hidden" in value:
                pieces = [each if isinstance(each, str) else f"<secret {each[0]}>" for each in value["$hidden"]]
                attrs[key] = "holds a secret (44 bytes)" if key == "content" else "".join(pieces)
        database.execute("UPDATE resource SET attrs = ? WHERE name = ?", (json.dumps(attrs), name))
    database.execute("PRAGMA user_version=3")
    database.commit()
    database.close()
    (machine.place / "digest.key").unlink()


@pytest.mark.parametrize("kind", NODES)
@pytest.mark.parametrize("again", [False, True])
def test_a_ledger_of_0_4_0_does_not_know_its_secrets_before_an_apply(machine: Machine, kind: str, again: bool) -> None:
    """The line stays, and the removal says why. A whole file is compared by the digest of its state."""
    path = machine.folder / "host/f"
    path.write_text(WAS)
    node = NODES[kind](str(path), SECRET)
    assert machine.run(node).end["status"] == "ok"
    as_0_4_0(machine)
    if again:
        assert machine.run(node).end["status"] == "ok"
    said = only(machine, secrets=True)
    assert said.end["status"] == "ok"
    (removed,) = said.part("removals", "layer")
    if again or kind == "file":
        assert path.read_text() == WAS and not removed.get("leaves")
    else:
        assert SECRET in path.read_text() and "an earlier version recorded this without its secret" in str(removed)
    clean(machine, said, SECRET)


def test_a_mask_in_a_ledger_of_0_4_0_that_was_text_is_undone(machine: Machine) -> None:
    path = machine.folder / "host/f"
    path.write_text(WAS)
    assert machine.run(line(str(path), LITERAL)).end["status"] == "ok"
    as_0_4_0_without_secrets(machine)
    assert only(machine, secrets=True).end["status"] == "ok"
    assert path.read_text() == WAS


def as_0_4_0_without_secrets(machine: Machine) -> None:
    database = sqlite3.connect(machine.place / "ledger.db")
    database.execute("PRAGMA user_version=3")
    database.commit()
    database.close()
