"""Edits of parts of files on a light host: the plan comes true, undo restores the lines, and no secret is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.command import Ran, reach, statecfg
from tests.host.resources.truth import steps
from tests.lab import Host

HOSTS = "127.0.0.1 localhost\n#port = 1\nport = 1\ncolor = red"
SECRET = "s3cret-word-of-db"
VARS = "vars:\n  word: !secret {env: STATECFG_TEST_WORD}\n"


class Site:
    """A project with one playbook for one host, and an empty directory on this host."""

    def __init__(self, host: Host, directory: Path, place: str) -> None:
        self.host, self.directory, self.place = host, directory, place
        self.options = reach(directory, [host])

    def say(self, verb: str, resources: str = "", *more: str, code: int | None = 0) -> Ran:
        """Run a verb with a playbook that contains these resources; without any, with the last playbook."""
        playbook = self.directory / "site.yml"
        if resources:
            playbook.write_text(f"hosts: all\n{VARS}resources:\n{resources}")
        asked = [] if verb in ("plan", "verify") else ["--yes"]
        env = {"STATECFG_TEST_WORD": SECRET}
        return statecfg(verb, playbook, *asked, *more, *self.options, cwd=self.directory, code=code, **env)

    def report(self, verb: str, resources: str = "", *more: str, code: int | None = 0) -> dict[str, Any]:
        """Return the host's part of the report."""
        found: dict[str, Any] = self.say(verb, resources, "--json", *more, code=code).json()["hosts"][self.host.name]
        return found

    def come_true(self, resources: str) -> dict[str, Any]:
        """Plan, apply as planned, and plan again: nothing is left to do. Return the planned nodes by name."""
        planned = nodes(self.report("plan", resources))
        applied = nodes(self.report("apply"))
        for name, node in planned.items():
            assert node["outcome"] in ("changed", "unchanged"), node
            assert (steps(applied[name]), applied[name]["changes"]) == (steps(node), node["changes"]), name
        assert {node["outcome"] for node in nodes(self.report("plan")).values()} == {"unchanged"}
        return planned

    def clean(self) -> None:
        """Destroy what the test has applied."""
        if (self.directory / "site.yml").exists():
            self.say("destroy", code=None)

    def write(self, name: str, text: str) -> None:
        self.host.write(f"{self.place}/{name}", text)

    def read(self, name: str) -> str:
        return self.host.read(f"{self.place}/{name}")

    def exists(self, name: str) -> bool:
        return self.host.path(f"{self.place}/{name}").exists()


def nodes(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the report's nodes by name."""
    return {node["name"]: node for layer in report["layers"] for node in layer}


@pytest.fixture
def site(light_host: Host, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(light_host, tmp_path, f"/srv/{request.node.name}")
    found.write("hosts", HOSTS)
    yield found
    found.say("destroy", code=None)


def edits(site: Site) -> str:
    """Return resources of all three types that edit one file in one layer."""
    path = f"{site.place}/hosts"
    return rf"""
  - line_in_file: {path}
    provides: a line
    match: '^(port) = \d+$'
    line: '\1 = 2'
    backrefs: true
  - block_in_file: {path}
    name: cluster
    block: "192.0.2.1 db1\n192.0.2.2 db2\n"
    after: localhost
    mode: "0600"
  - block_in_file: {path}
    provides: second
    name: more
    block: ""
  - replace: {path}
    pattern: '^color = (red|green)$'
    replacement: 'color = dark\1'
    count_at_least: 1
    validate: [grep, -q, darkred, "{{}}"]
    backup: .old
"""


EDITED = (
    "127.0.0.1 localhost\n# BEGIN managed by statecfg: cluster\n192.0.2.1 db1\n192.0.2.2 db2\n"
    "# END managed by statecfg: cluster\n#port = 1\nport = 2\ncolor = darkred\n"
    "# BEGIN managed by statecfg: more\n# END managed by statecfg: more\n"
)


def test_edits_of_one_file_come_true_and_are_undone(site: Site) -> None:
    """Nodes of one layer edit one file one after another; destroy restores it to the byte."""
    planned = site.come_true(edits(site))
    assert {node["outcome"] for node in planned.values()} == {"changed"}
    diffs = {name: "".join(change.get("diff", "") for change in node["changes"]) for name, node in planned.items()}
    assert "-port = 1\n+port = 2\n" in diffs["a line"]
    assert "+192.0.2.1 db1\n" in diffs[f"block_in_file:{site.place}/hosts"]
    assert "+color = darkred" in diffs[f"replace:{site.place}/hosts"]
    assert site.read("hosts") == EDITED and site.exists("hosts.old")
    site.say("destroy")
    assert site.read("hosts") == HOSTS and not site.exists("hosts.old")
    assert site.host.path(f"{site.place}/hosts").stat().st_mode & 0o7777 == 0o644


def test_drifted_and_half_finished_files_come_true(site: Site) -> None:
    site.come_true(edits(site))
    site.write("hosts", EDITED.replace("db2", "db3").replace("darkred", "green").replace("# END managed by", "#"))
    failed = site.report("plan", code=None)
    assert "each must be there once" in str([node.get("reason") for node in nodes(failed).values()])
    site.write("hosts", EDITED.replace("db2", "db3").replace("port = 2", "port = 9").replace("darkred", "red"))
    planned = site.come_true(edits(site))
    assert {node["outcome"] for node in planned.values()} == {"changed", "unchanged"}
    assert site.read("hosts") == EDITED


def test_undo_keeps_the_lines_that_others_have_changed(site: Site) -> None:
    site.come_true(edits(site))
    site.write("hosts", "first\n" + EDITED.replace("db2", "db3").replace("darkred", "darkred # mine") + "last\n")
    (said,) = [site.report("destroy")]
    left = str([node.get("leaves") for layer in said["removals"] for node in layer])
    assert "others have changed the lines after `# BEGIN managed by statecfg: cluster`: the block stays" in left
    assert "others have changed the lines of 1 of the replaced places: these lines stay" in left
    kept = EDITED.replace("db2", "db3").replace("darkred", "darkred # mine").replace("port = 2", "port = 1")
    second = "# BEGIN managed by statecfg: more\n# END managed by statecfg: more\n"
    assert site.read("hosts") == "first\n" + kept.replace(second, "") + "last\n"
    site.write("hosts", HOSTS)


def test_edits_act_on_a_file_that_an_earlier_node_creates(site: Site) -> None:
    """The plan shows them on the planned file. Without the earlier node, `if_file_exists` does nothing."""
    path = f"{site.place}/new"
    optional = f"  - line_in_file: {path}\n    line: optional\n    if_file_exists: true\n    provides: optional\n"
    assert nodes(site.report("plan", optional))["optional"]["outcome"] == "unchanged"
    site.say("apply")
    assert not site.exists("new")
    made = f"  - block_in_file: {path}\n    block: listen 80\n    create: true\n    provides: made\n"
    edited = (
        f"{optional}    requires: [made]\n"
        f"  - replace: {path}\n    pattern: ^optional$\n    replacement: optional\n    count_at_least: 1\n"
        "    requires: [optional]\n"
    )
    planned = site.come_true(made + edited)
    assert planned["optional"]["changes"][0]["diff"].endswith("+optional\n")
    text = "# BEGIN managed by statecfg: made\nlisten 80\n# END managed by statecfg: made\noptional\n"
    assert site.read("new") == text
    site.say("destroy")
    assert not site.exists("new")


def test_a_block_that_left_the_playbook_is_removed_and_a_former_one_comes_back(site: Site) -> None:
    ours = "# BEGIN managed by statecfg: cluster\n{}\n# END managed by statecfg: cluster\n"
    site.write("hosts", "a\n" + ours.format("theirs") + "b\n")
    block = f"  - block_in_file: {site.place}/hosts\n    name: cluster\n    block: ours\n"
    absent = f"  - block_in_file: {site.place}/hosts\n    name: cluster\n    absent: true\n"
    other = f"  - line_in_file: {site.place}/hosts\n    line: c\n    provides: c\n"
    site.come_true(block + other)
    assert site.read("hosts") == "a\n" + ours.format("ours") + "b\nc\n"
    site.say("apply", other, "--prune")
    assert site.read("hosts") == "a\n" + ours.format("theirs") + "b\nc\n"
    site.come_true(absent + other)
    assert site.read("hosts") == "a\nb\nc\n"
    site.say("destroy")
    assert site.read("hosts") == "a\n" + ours.format("theirs") + "b\n"


def test_a_changed_replacement_is_undone_to_the_first_text(site: Site) -> None:
    text = f"  - replace: {site.place}/hosts\n    pattern: '^port = .*$'\n    replacement: port = {{}}\n"
    for number in (2, 3):
        site.come_true(text.format(number))
    assert "port = 3\n" in site.read("hosts")
    site.say("destroy")
    assert site.read("hosts") == HOSTS


def test_an_edit_that_the_validation_rejects_changes_nothing(site: Site) -> None:
    path = f"{site.place}/hosts"
    replacing = f"  - replace: {path}\n    pattern: red\n    replacement: blue\n"
    site.report("apply", f"{replacing}    validate: [grep, red, '{{}}']\n", code=1)
    assert site.read("hosts") == HOSTS
    site.report("apply", f"  - block_in_file: {path}\n    block: x\n    validate: ['false', '{{}}']\n", code=1)
    assert site.read("hosts") == HOSTS


def test_secrets_in_edits_are_written_masked_and_undone(site: Site) -> None:
    """Neither the output nor the ledger contains the secret, and undo finds the lines without it."""
    path = f"{site.place}/hosts"
    resources = f"""
  - block_in_file: {path}
    name: login
    block: "{{{{ word }}}}"
  - replace: {path}
    pattern: (?<=^color = ).*$
    replacement: "{{{{ word }}}}"
  - line_in_file: {path}
    match: ^(port) = .*$
    line: "\\\\1: {{{{ word }}}}"
    backrefs: true
"""
    said = [site.say(verb, resources, *more) for verb in ("plan", "apply", "verify") for more in ((), ("--json",))]
    block = f"# BEGIN managed by statecfg: login\n{SECRET}\n# END managed by statecfg: login\n"
    assert site.read("hosts") == f"127.0.0.1 localhost\n#port = 1\nport: {SECRET}\ncolor = {SECRET}\n{block}"
    said += [site.say("plan", "", "--json"), site.say("destroy", f"  - file: {site.place}/other\n    content: x\n")]
    assert SECRET not in "".join(ran.out + ran.err for ran in said)
    assert site.host.run(["grep", "-rl", SECRET, "/var/lib/statecfg"], check=False).stdout == ""
    assert site.read("hosts") == HOSTS


@pytest.mark.parametrize("text", ["a\0b", "\udcff\n"])
def test_files_that_are_not_text_are_refused_and_stay(site: Site, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    path = site.host.path(f"{site.place}/data")
    path.write_bytes(data)
    for kind, more in (("block_in_file", "block: x"), ("replace", "pattern: a\n    replacement: b")):
        report = site.report("apply", f"  - {kind}: {site.place}/data\n    {more}\n", code=1)
        (node,) = nodes(report).values()
        assert "is not a text file" in node["reason"] or "is not UTF-8 text" in node["reason"]
    assert path.read_bytes() == data


def test_a_new_file_with_a_secret_is_private(site: Site) -> None:
    place = site.place
    site.come_true(
        f"""\
  - {{file: {place}/whole, content: "pw = {{{{ word }}}}"}}
  - {{line_in_file: {place}/lines, line: "pw = {{{{ word }}}}", create: true}}
  - {{json_key: {place}/json, key: pw, value: "{{{{ word }}}}", create: true}}
  - {{file: {place}/plain, content: "no secret"}}
  - {{file: {place}/given, content: "pw = {{{{ word }}}}", mode: "0640"}}
"""
    )
    modes = {name: site.host.run(["stat", "-c", "%a", f"{place}/{name}"]).stdout for name in ("whole", "lines", "json")}
    assert set(modes.values()) == {"600\n"}, modes
    assert site.host.run(["stat", "-c", "%a", f"{place}/plain", f"{place}/given"]).stdout == "644\n640\n"
