"""Conditions that a real host checks at a node's turn: plan, saved plan, apply, ledger, triggers and undo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.host.command import statecfg
from tests.host.run.site import LEDGER, Site
from tests.lab import Host

YAML = """\
hosts: all
resources:
  - directory: {place}
    mode: "0755"
  - file: {place}/conf
    content: "mode = live\\n"
  - when_host: {{user: root}}
    resources:
      - file: {place}/wanted
        content: hello
        when_host: [{{path: {place}/conf, contains: "^mode = live"}}, {{package: dpkg, version: "> 1.0"}}]
  - file: {place}/other
    content: hello
    when_host: {{path: {place}/switch, is: file}}
  - command: count
    shell: echo done >> {place}/log
    restart_on: ["file:{place}/other"]
    effects: {{}}
"""
PYTHON = """\
from statecfg import play, when_host
from statecfg.resources import command, directory, file

@play(hosts="all")
def site(host):
    live = {{"path": "{place}/conf", "contains": "^mode = live"}}
    dpkg = {{"package": "dpkg", "version": "> 1.0"}}
    other = file("{place}/other", content="hello", when_host={{"path": "{place}/switch", "is": "file"}})
    with when_host({{"user": "root"}}):
        wanted = file("{place}/wanted", content="hello", when_host=[live, dpkg])
    return [
        wanted,
        directory("{place}", mode="0755"),
        file("{place}/conf", content="mode = live\\n"),
        command("count", shell="echo done >> {place}/log", restart_on=[other], effects={{}}),
    ]
"""
HY = """\
(require statecfg.dialects.hy [defplay])
(import statecfg [when-host]
        statecfg.resources [command directory file])

(defplay site [host] {{:hosts "all"}}
  (setv live {{:path "{place}/conf" :contains "^mode = live"}}
        other (file "{place}/other" {{:content "hello" :when-host {{:path "{place}/switch" :is "file"}}}}))
  [(directory "{place}" {{:mode "0755"}})
   (file "{place}/conf" {{:content "mode = live\\n"}})
   (with [_ (when-host {{:user "root"}})]
     (file "{place}/wanted" {{:content "hello" :when-host [live {{:package "dpkg" :version "> 1.0"}}]}}))
   (command "count" {{:shell "echo done >> {place}/log" :restart-on [other] :effects {{}}}})])
"""


class Deciding(Site):
    """A project whose nodes have conditions.

    :ivar place: a directory of the host
    :ivar file: the playbook
    """

    place = ""
    file = "site.yml"

    def write(self, text: str, file: str = "site.yml") -> None:
        self.file = file
        (self.base / file).write_text(text.format(place=self.place))

    def run(self, verb: str, *arguments: str, code: int | None = 0) -> dict[str, dict[str, Any]]:
        """Run the command; return the nodes of its report by name, without the directory's path."""
        more = () if verb in ("plan", "verify") or "--yes" in arguments else ("--yes",)
        report = self.report(verb, self.file, *arguments, *more, code=code)
        nodes = [node for part in ("removals", "layers", "left") for layer in report.get(part, ()) for node in layer]
        return {node["name"].replace(f"{self.place}/", ""): node for node in nodes}

    def managed(self) -> set[str]:
        """Return the names of the resources in the ledger."""
        rows = f"sqlite3.connect({LEDGER!r}).execute('select name from resource')"
        code = f"import sqlite3; print(*(row[0] for row in {rows}))"
        return {name.replace(f"{self.place}/", "") for name in self.host.run(["python3", "-c", code]).stdout.split()}

    def exists(self, name: str) -> bool:
        return self.host.path(f"{self.place}/{name}").exists()


def outcomes(nodes: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return name → outcome; "excluded" for a node whose condition is false."""
    return {name: "excluded" if node.get("excluded") else node["outcome"] for name, node in nodes.items()}


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Deciding:
    made = Deciding(tmp_path, light_host, place.rpartition("/")[2])
    made.place = place
    made.fresh()
    made.write(YAML)
    return made


@pytest.mark.parametrize(("text", "file"), [(YAML, "site.yml"), (PYTHON, "site.py"), (HY, "site.hy")])
def test_plan_is_what_apply_does_in_each_dialect(site: Deciding, text: str, file: str) -> None:
    site.write(text, file)
    planned = site.run("plan")
    assert outcomes(planned) == {
        f"directory:{site.place}": "changed", "file:conf": "changed", "file:wanted": "changed",
        "file:other": "excluded", "command:count": "unchanged",
    }  # fmt: skip
    assert planned["file:other"]["excluded"] == f"its condition is false: {site.place}/switch is a file"
    assert outcomes(site.run("apply")) == outcomes(planned)
    assert site.exists("wanted") and not site.exists("other") and not site.exists("log")
    assert site.managed() == {f"directory:{site.place}", "file:conf", "file:wanted", "command:count"}
    again = {**outcomes(planned), **dict.fromkeys((f"directory:{site.place}", "file:conf", "file:wanted"), "unchanged")}
    assert outcomes(site.run("plan")) == outcomes(site.run("apply")) == outcomes(site.run("verify")) == again
    site.run("destroy")
    assert not site.exists("")


def test_condition_that_changes_between_runs(site: Deciding) -> None:
    site.run("apply")
    site.host.write(f"{site.place}/switch", "")
    assert outcomes(site.run("plan"))["file:other"] == "changed"
    applied = site.run("apply")
    assert outcomes(applied)["file:other"] == outcomes(applied)["command:count"] == "changed"
    assert site.exists("other") and "file:other" in site.managed()

    site.host.run(["rm", f"{site.place}/switch"])
    site.host.write(f"{site.place}/other", "by hand")
    for verb in (["plan"], ["verify"], ["apply"], ["apply", "--prune"]):
        assert outcomes(site.run(*verb))["file:other"] == "excluded"
    assert site.host.read(f"{site.place}/other") == "by hand" and "file:other" in site.managed()
    assert "Nothing to do: 4 resources as defined." in site("apply", "site.yml", "--yes").out

    site.write(YAML.replace("/other\n    content: hello\n", "/other\n    content: newer\n"))
    assert outcomes(site.run("plan"))["file:other"] == "excluded"
    site.host.write(f"{site.place}/switch", "")
    assert outcomes(site.run("apply"))["file:other"] == "changed"
    assert site.host.read(f"{site.place}/other") == "newer"
    site.host.run(["rm", f"{site.place}/switch"])
    site.run("apply")
    removed = site.run("destroy")
    assert outcomes(removed)["file:other"] == "changed" and not site.exists("other")
    assert site.exists("log")  # a command wrote it, so it stays


def test_excluded_node_that_leaves_the_definition_is_pruned(site: Deciding) -> None:
    site.host.run(["mkdir", "-p", site.place])
    site.host.write(f"{site.place}/switch", "")
    site.run("apply")
    site.host.run(["rm", f"{site.place}/switch"])
    entry = YAML.partition("  - file: {place}/other")[2].partition("  - command")[0]
    without = YAML.replace("  - file: {place}/other" + entry, "").partition("  - command")[0]
    site.write(without)
    assert outcomes(site.run("apply", "--prune"))["file:other"] == "changed"
    assert not site.exists("other") and site.exists("wanted")


def test_saved_plan_is_applied_exactly_or_refused(site: Deciding) -> None:
    site("plan", "site.yml", "--out", "first.plan")
    assert "its condition is false" in statecfg("show", "first.plan", cwd=site.base).out
    site("apply", "first.plan", "--yes")
    assert site.exists("wanted")
    site("plan", "site.yml", "--out", "second.plan")
    site.host.write(f"{site.place}/switch", "")
    refused = site("apply", "second.plan", "--yes", code=6)
    assert f"file:{site.place}/other" in refused.out + refused.err and not site.exists("other")
    site.host.write(f"{site.place}/other", "hello")
    refused = site("apply", "second.plan", "--yes", code=6)  # as defined, but no longer excluded
    assert f"file:{site.place}/other" in refused.out + refused.err
    site.host.run(["rm", f"{site.place}/switch"])
    site("apply", "second.plan", "--yes")


UNKNOWN = """\
hosts: all
resources:
  - command: build
    shell: mkdir -p {place} && touch {place}/{{{{ made }}}}
    creates: {place}
  - file: {place}/one
    content: hello
    when_host: {{path: {place}/built}}
    requires: ["command:build"]
  - file: {place}/two
    content: hello
    when_host: {{command: [test, -e, {place}/built], read_only: true, reads: [{place}]}}
    requires: ["command:build"]
  - file: {place}/three
    content: hello
    requires: ["file:{place}/one", "file:{place}/two"]
"""


@pytest.mark.parametrize(("made", "holds"), [("built", True), ("failed", False)])
def test_conditions_are_known_after_the_nodes_that_decide_them(site: Deciding, made: str, holds: bool) -> None:
    site.write(UNKNOWN.replace("{{{{ made }}}}", made))
    planned = site.run("plan")
    assert [planned[f"file:{name}"]["known_after"] for name in ("one", "two")] == ["command:build"] * 2
    applied = outcomes(site.run("apply"))
    expected = "changed" if holds else "excluded"
    assert [applied[f"file:{name}"] for name in ("one", "two", "three")] == [expected, expected, "changed"]
    assert [site.exists(name) for name in ("one", "two")] == [holds, holds]
    assert ("file:one" in site.managed()) is holds
    again = outcomes(site.run("plan"))
    assert [again[f"file:{name}"] for name in ("one", "two")] == ["unchanged" if holds else "excluded"] * 2
    site.run("destroy")
    assert not site.exists("one") and not site.exists("two")


def test_condition_that_its_own_node_makes_false(site: Deciding) -> None:
    site.write("""\
hosts: all
resources:
  - directory: {place}
  - command: initialize
    shell: echo ready >> {place}/data
    when_host: {{not: {{path: {place}/data}}}}
    always: true
    effects: {{files: [{place}/data]}}
""")
    assert outcomes(site.run("plan"))["command:initialize"] == "changed"
    assert outcomes(site.run("apply"))["command:initialize"] == "changed"
    assert outcomes(site.run("apply"))["command:initialize"] == "excluded"
    assert outcomes(site.run("apply", "--prune"))["command:initialize"] == "excluded"
    assert site.host.read(f"{site.place}/data") == "ready\n"


def test_node_that_is_not_required_makes_a_condition_true(site: Deciding) -> None:
    """The node that changes what a condition reads without being required is named, as for any other node."""
    site.write("""\
hosts: all
resources:
  - directory: {place}
  - command: aside
    shell: touch {place}/switch
    creates: {place}/switch
    requires: ["directory:{place}"]
  - file: {place}/other
    content: hello
    when_host: {{path: {place}/switch}}
""")
    failed = site.run("apply", code=1)["file:other"]
    assert failed["outcome"] == "failed" and "command:aside" in failed["reason"]
    assert outcomes(site.run("apply"))["file:other"] == "changed"


def test_condition_that_cannot_be_checked_fails_its_node(site: Deciding) -> None:
    site.write("""\
hosts: all
resources:
  - file: {place}
    content: hello
    when_host: {{path: /proc/1/mem, contains: x}}
""")
    failed = site.run("plan", code=1)[f"file:{site.place}"]
    assert failed["outcome"] == "failed" and "/proc/1/mem" in failed["reason"]
