"""Values of nodes on a real host: the plan is what the apply does on bare, converged, drifted and half-failed hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.host.run.site import LEDGER, Site
from tests.lab import Host

PLAYBOOK = """\
hosts: all
vars:
  token: "{{{{ output('command:token', 'stdout') }}}}"
resources:
  - {{directory: {place}, mode: "0755"}}
  - command: token
    shell: 'cat {place}.source && touch {place}/token; echo noise >&2'
    creates: {place}/token
    effects: {{}}
    undo: rm {place}/token
    requires: ["directory:{place}"]
  - file: {place}/app.conf
    content: |
      token = {{{{ token }}}}
  - file: {place}/large.conf
    template: large.j2
  - file: {place}/sums
    content: "{{{{ output('file:{place}/app.conf', 'sha256') }}}}\\n"
  - line_in_file: {place}.lines
    line: "token {{{{ token }}}}"
    match: "^token"
"""
LARGE = "{% for number in range(1000) %}line {{ number }} {{ output('command:token', 'stdout') }}\n{% endfor %}"


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Site:
    made = Site(tmp_path, light_host, place.rpartition("/")[2])
    made.fresh()
    (made.base / "site.yml").write_text(PLAYBOOK.format(place=place))
    (made.base / "large.j2").write_text(LARGE)
    light_host.write(f"{place}.source", "t-1\n\n")
    light_host.write(f"{place}.lines", "first\n")
    return made


def nodes(report: dict[str, Any], key: str = "outcome") -> dict[str, Any]:
    """Return node → a field of its report."""
    return {node["name"]: node.get(key) for layer in report["layers"] for node in layer}


def steps(report: dict[str, Any]) -> dict[str, Any]:
    """Return node → its actions and changes."""
    return {
        node["name"]: ([(action["op"], action["args"]) for action in node["actions"]], node["changes"])
        for layer in report["layers"]
        for node in layer
        if node["outcome"] != "unchanged"
    }


def test_value_is_known_after_its_node_and_then_inserted(site: Site, place: str) -> None:
    planned = site.report("plan", "site.yml")
    known_after = nodes(planned, "known_after")
    assert nodes(planned)["command:token"] == "changed"
    assert known_after[f"file:{place}/app.conf"] == known_after[f"file:{place}/large.conf"] == "command:token"
    assert nodes(planned)[f"file:{place}/sums"] == "unknown"
    applied = site.report("apply", "site.yml", "--yes")
    assert set(nodes(applied).values()) == {"changed"}
    assert site.host.read(f"{place}/app.conf") == "token = t-1\n"
    assert site.host.read(f"{place}/large.conf").endswith("line 999 t-1\n")
    digest = site.host.run(["sha256sum", f"{place}/app.conf"]).stdout.split()[0]
    assert site.host.read(f"{place}/sums") == f"{digest}\n" and site.host.read(f"{place}.lines") == "first\ntoken t-1\n"

    # converged: the command does not run, and its value is the recorded one
    again = site.report("plan", "site.yml", "--detailed-exitcode")
    assert set(nodes(again).values()) == {"unchanged"}
    assert set(nodes(site.report("apply", "site.yml", "--yes")).values()) == {"unchanged"}
    assert "No drift" in site("verify", "site.yml").out

    # drifted: everything is known in the plan, also the digest of a file that the run will write
    site.host.write(f"{place}/app.conf", "by hand\n")
    site.host.write(f"{place}/sums", "by hand\n")
    site.host.write(f"{place}.lines", "first\ntoken other\n")
    drifted = steps(site.report("plan", "site.yml"))
    assert set(drifted) == {f"file:{place}/app.conf", f"file:{place}/sums", f"line_in_file:{place}.lines"}
    assert drifted == steps(site.report("apply", "site.yml", "--yes"))
    assert site.host.read(f"{place}/sums") == f"{digest}\n"

    # the command runs again and prints something else
    site.host.run(["rm", f"{place}/token"])
    site.host.write(f"{place}.source", "t-2\n")
    saved = site("plan", "site.yml", "--out", "it.plan")
    assert "known after command:token" in saved.out
    site("apply", "it.plan", "--yes")
    assert site.host.read(f"{place}/app.conf") == "token = t-2\n"
    assert site.host.read(f"{place}.lines") == "first\ntoken t-2\n"
    assert set(nodes(site.report("plan", "site.yml")).values()) == {"unchanged"}

    # a plan with known values is refused if a value has changed since
    site.host.write(f"{place}.lines", "first\n")
    site("plan", "site.yml", "--out", "it.plan")
    site.change_ledger("""UPDATE resource SET memory = replace(memory, 't-2', 't-3') WHERE name = 'command:token'""")
    site("apply", "it.plan", "--yes", code=6)
    site.change_ledger("""UPDATE resource SET memory = replace(memory, 't-3', 't-2') WHERE name = 'command:token'""")

    # a destroy removes the line with the value of the last apply
    site("apply", "it.plan", "--yes")
    site("destroy", "site.yml", "--yes")
    assert not site.host.path(place).exists() and site.host.read(f"{place}.lines") == "first\n"


def test_unrecorded_value_is_an_error_in_plan_and_apply(site: Site, place: str) -> None:
    text = PLAYBOOK.format(place=place)
    start = text.index(f"  - file: {place}/app.conf")
    (site.base / "site.yml").write_text(text[:start])
    site("apply", "site.yml", "--yes")
    (site.base / "site.yml").write_text(text)
    for verb in (["plan", "site.yml"], ["apply", "site.yml", "--yes"]):
        report = site.report(*verb, code=1)
        reason = nodes(report, "reason")[f"file:{place}/app.conf"]
        assert "the value stdout of command:token is not known" in reason and "no record of the value" in reason
    assert not site.host.path(f"{place}/app.conf").exists()
    site.host.run(["rm", f"{place}/token"])
    site("apply", "site.yml", "--yes")
    assert site.host.read(f"{place}/app.conf") == "token = t-1\n"
    site("destroy", "site.yml", "--yes")


def test_half_failed_run_is_completed(site: Site, place: str) -> None:
    site.host.run(["sh", "-c", f"rm {place}.lines && mkdir {place}.lines"])
    site("apply", "site.yml", "--yes", code=1)
    assert site.host.path(f"{place}/token").exists()
    site.host.run(["sh", "-c", f"rmdir {place}.lines && echo first > {place}.lines"])
    planned = site.report("plan", "site.yml")
    assert "unknown" not in nodes(planned).values()
    assert steps(planned) == steps(site.report("apply", "site.yml", "--yes"))
    assert site.host.read(f"{place}/app.conf") == "token = t-1\n"
    site("destroy", "site.yml", "--yes")


def test_killed_run_keeps_what_a_command_said(site: Site, place: str) -> None:
    crash = f"""\
  - command: crash
    shell: 'touch {place}.crashed; kill -9 $PPID'
    unless: test -e {place}.crashed
    effects: {{}}
    requires: ["command:token"]
"""
    text = PLAYBOOK.format(place=place)
    start = text.index(f"  - file: {place}/app.conf")
    users = text[start:].replace("    content:", "    requires: ['command:crash']\n    content:")
    (site.base / "site.yml").write_text(text[:start] + crash + users)
    assert site("apply", "site.yml", "--yes", code=None).code == 3
    assert site.host.path(f"{place}/token").exists() and not site.host.path(f"{place}/app.conf").exists()
    planned = site.report("plan", "site.yml")
    assert "unknown" not in nodes(planned).values()
    assert steps(planned) == steps(site.report("apply", "site.yml", "--yes"))
    assert site.host.read(f"{place}/app.conf") == "token = t-1\n"
    site("destroy", "site.yml", "--yes")


def test_failed_command_stops_what_uses_its_value(site: Site, place: str) -> None:
    site.host.run(["rm", f"{place}.source"])
    report = site.report("apply", "site.yml", "--yes", "--keep-going", code=1)
    assert nodes(report)["command:token"] == "failed" and nodes(report)[f"file:{place}/app.conf"] == "skipped"
    site.host.write(f"{place}.source", "a\nb\n")
    report = site.report("apply", "site.yml", "--yes", "--keep-going", code=1)
    assert "it has several lines" in nodes(report, "reason")[f"line_in_file:{place}.lines"]
    assert site.host.read(f"{place}/app.conf") == "token = a\nb\n"
    site("destroy", "site.yml", "--yes")


def test_secret_value_is_nowhere_but_where_it_belongs(site: Site, place: str) -> None:
    (site.base / "site.yml").write_text(f"""\
hosts: all
resources:
  - command: derive
    shell: 'printf "derived-%s-1234" "$KEY"; echo noise >&2'
    env: {{KEY: !secret {{env: KEY}}}}
    always: true
    effects: {{}}
  - file: {place}.conf
    content: "value {{{{ output('command:derive', 'stdout') }}}}\\n"
  - command: use
    shell: 'echo "it is $VALUE"; echo "$VALUE" > {place}.used'
    env: {{VALUE: "{{{{ output('command:derive', 'stdout') }}}}"}}
    creates: {place}.used
    effects: {{}}
""")
    outputs = []
    env = {"KEY": "first-key"}
    for verb in (["plan"], ["apply", "--yes", "-vv"], ["apply", "--yes", "-vv"], ["apply", "--yes", "--json"]):
        ran = site(verb[0], "site.yml", *verb[1:], **env)
        outputs.append(ran.out + ran.err)
        if verb[-1] == "--json":
            assert set(nodes(ran.json()["hosts"][site.host.name])) == {
                "command:derive",
                f"file:{place}.conf",
                "command:use",
            }
    assert site.host.read(f"{place}.conf") == "value derived-first-key-1234\n"
    assert site.host.read(f"{place}.used") == "derived-first-key-1234\n"
    assert "it is <secret stdout-of-command-derive>" in "".join(outputs) and "noise" in "".join(outputs)
    env = {"KEY": "other-key"}
    for verb in (["plan"], ["apply", "--yes", "-vv"]):
        ran = site(verb[0], "site.yml", *verb[1:], **env)
        outputs.append(ran.out + ran.err)
    assert site.host.read(f"{place}.conf") == "value derived-other-key-1234\n"
    stored = [path.read_bytes() for path in (*site.base.rglob("*"), *site.state.rglob("*")) if path.is_file()]
    for value in ("derived-first-key-1234", "derived-other-key-1234", "first-key", "other-key"):
        assert not [text for text in outputs if value in text], value
        assert not [data for data in stored if value.encode() in data], value
        found = site.host.run(["sh", "-c", f"grep -rl -- '{value}' /var/lib/statecfg || true"]).stdout.split()
        assert not found, (value, found)
    assert site.host.path(LEDGER).exists()
    site("destroy", "site.yml", "--yes", **env)
