"""Roles and automatic requirements on a real host: the plan is what the apply does, and prune removes everything."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from statecfg.cli import exit_codes
from tests.host.run.site import Site, names
from tests.lab import Host

ROLE = """\
params:
  root: {type: path, required: true}
  names: {type: strings, default: [a, b]}
  prefix: {type: name, required: true}
  word: {type: string, secret: true, required: true}
resources:
  - file: "{{ root }}/{{ item }}"
    template: name.j2
    mode: "0640"
    owner: "{{ prefix ~ names | length }}"
    for_each: names
  - line: "{{ root }}/lines"
    text: "static"
  - directory: "{{ root }}"
    mode: "0755"
  - user: "{{ prefix ~ names | length }}"
    create_home: false
"""
NODE_TYPE = """\
from __future__ import annotations

from typing import Any

from statecfg import AbsolutePath, Action, HostNode, Machine, Result, Text, World, node_type, op


@op
def put(machine: Machine, path: str, text: str) -> Result:
    "Write a line."
    return machine.write(path, text)


@op
def drop(machine: Machine, path: str) -> Result:
    "Remove the file."
    return machine.remove(path)


@node_type
def line(path: AbsolutePath, *, text: Text) -> None:
    "A file with one line."


@line.check
def check(node: HostNode, world: World) -> list[Action]:
    path, text = node.attrs["path"], node.attrs["text"]
    right = world.stat(path) is not None and world.read(path).decode() == text
    return [] if right else [put(path, text)]


@line.undo
def undo(node: HostNode, memory: dict[str, Any], world: World) -> list[Action]:
    return [drop(node.attrs["path"])] if world.stat(node.attrs["path"]) is not None else []
"""
PLAYBOOK = """\
hosts: all
resources:
  - include: words
    vars: {{root: {place}/r, names: [a, b, c], prefix: {prefix}, word: "secret-word"}}
  - directory: {place}
    mode: "0755"
"""


@pytest.fixture
def prefix(place: str) -> str:
    """Return the beginning of a user's name that no other test on the host uses."""
    return f"r{zlib.crc32(place.encode())}-"


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str, prefix: str) -> Site:
    found = Site(tmp_path, light_host, place.rpartition("/")[2])
    role = found.base / "roles/words"
    for folder in ("templates", "resources"):
        (role / folder).mkdir(parents=True)
    (role / "role.yml").write_text(ROLE)
    (role / "templates/name.j2").write_text("{{ item }} {{ word }}\n")
    (role / "resources/line.py").write_text(NODE_TYPE)
    (found.base / "site.yml").write_text(PLAYBOOK.format(place=place, prefix=prefix))
    return found


def test_plan_of_a_role_is_what_apply_does(site: Site, light_host: Host, place: str, prefix: str) -> None:
    planned = site.report("plan", "site.yml")
    expected = [
        [f"directory:{place}", f"user:{prefix}3"],
        [f"directory:{place}/r"],
        [f"file:{place}/r/a", f"file:{place}/r/b", f"file:{place}/r/c", f"line:{place}/r/lines"],
    ]
    assert [names([layer]) for layer in planned["layers"]] == expected
    applied = site("apply", "site.yml", "--yes", "--json")
    assert "secret-word" not in applied.out
    report = applied.json()["hosts"][light_host.name]
    assert report["summary"] == planned["summary"] == {"changed": 7}
    assert light_host.read(f"{place}/r/b") == "b secret-word\n"
    assert light_host.run(["stat", "-c", "%U %a", f"{place}/r/c"]).stdout.strip() == f"{prefix}3 640"
    assert site("plan", "site.yml", "--detailed-exitcode").out.endswith("Plan: 0 to add, 0 to change, 0 to destroy.\n")

    light_host.write(f"{place}/r/lines", "drifted")
    light_host.run(["rm", "-r", f"{place}/r/a"])
    drifted = site.report("plan", "site.yml")
    again = site.report("apply", "site.yml", "--yes")
    assert drifted["summary"] == again["summary"] == {"changed": 2, "unchanged": 5}


def test_explain_shows_what_the_ledger_knows(site: Site, light_host: Host, place: str) -> None:
    site("apply", "site.yml", "--yes")
    shown = site("explain", f"line:{place}/r/lines", "site.yml", "--ledger").out
    assert "in the role words, which site.yml:3:5 includes" in shown
    assert f"⇠ directory:{place}/r\n" in shown and "automatic: its directory\n" in shown
    assert f"  managed by   {site.name}/site.yml" in shown
    data = site("explain", f"line:{place}/r/lines", "site.yml", "--ledger", "--json").json()
    (ledger,) = data["ledgers"].values()
    assert [run["summary"] for run in ledger["history"]] == [{"changed": 1}]
    host = site("explain", light_host.name, "site.yml", "--ledger").out
    assert "  plays        site\n" in host and f"  manages      7 resources  ({site.name}/site.yml)\n" in host
    variable = site("explain", "names", "site.yml").out
    assert "  inside       role words\n" in variable and "set by       role words (passed): ['a', 'b', 'c']" in variable
    assert site("explain", "names", "site.yml", "--ledger", code=5).err.count("is a variable: omit --ledger.\n") == 1
    (site.base / "site.yml").write_text("hosts: all\nresources: []\n")
    gone = site("explain", f"line:{place}/r/lines", "site.yml", "--ledger").out
    assert f"  managed by   {site.name}/site.yml" in gone
    nothing = site("explain", "host-that-is-missing", "site.yml", code=5)
    assert "no node, variable or host is called host-that-is-missing" in nothing.err
    assert site("explain", "file:/missing", "site.yml", "--ledger", code=5).err.count("SC0433") == 1
    inventory = site.base / "inventory.yml"
    inventory.write_text(inventory.read_text().replace("port: 22", "port: 1"))
    unreachable = site("explain", "file:/missing", "site.yml", "--ledger", code=exit_codes.UNREACHABLE)
    assert "SC0433" not in unreachable.err and "knows nothing" not in unreachable.out


def test_node_types_of_a_role_are_removed_after_the_include_is_gone(
    site: Site, light_host: Host, place: str, prefix: str
) -> None:
    site("apply", "site.yml", "--yes")
    (site.base / "site.yml").write_text(f"hosts: all\nresources:\n  - {{directory: {place}, mode: '0755'}}\n")
    planned = site.report("plan", "site.yml", "--prune")
    site("apply", "site.yml", "--prune", "--yes")
    assert sorted(names(planned["removals"]))[:1] == [f"directory:{place}/r"]
    assert light_host.run(["ls", place]).stdout == ""
    site("destroy", "site.yml", "--yes")
    left = light_host.run(["sh", "-c", f"ls -d {place}; id {prefix}3"], check=False)
    assert left.stdout == ""
