"""Definitions that depend on facts, on real hosts: one exchange, the barrier before any change, and saved plans."""

from __future__ import annotations

import json
import re
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.run import bundle, fleet, host_modules, prepare
from tests import lab
from tests.host import sent
from tests.host.command import Ran, reach, statecfg
from tests.host.run.relay import Relay
from tests.host.run.rig import settings
from tests.lab import add_user
from tests.lab.fixtures import or_skip

DELAY = 1.0  # of a round trip in seconds, long enough to be measured on a busy machine
PLAY = """\
hosts: all
resources:
  - directory: {place}
  - file: {place}/os
    content: "{{{{ host.facts.os.id }}}} {{{{ host.facts.kernel }}}}\\n"
    requires: ["directory:{place}"]
  - file: {place}/role
    content: "{{{{ host.facts.own.role }}}}\\n"
    requires: ["directory:{place}"]
  - symlink: {place}/main
    target: role
    when: host.facts.own.role == "main"
    requires: ["file:{place}/role"]
"""
BAD = """\
  - file: {place}/bad
    content: x
    mode: "{{{{ 'yellow' if host.facts.own.role == 'main' else '0644' }}}}"
    requires: ["directory:{place}"]
"""
ROLE = 'def fact(world):\n    return world.read("/etc/role").decode().strip()\n'


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[lab.Host]]:
    """Give three hosts that the tests of this module share."""
    with or_skip():
        made = lab.light_hosts(3, prefix="facts")
    for host, role in zip(made, ("main", "spare", "spare"), strict=True):
        host.write("/etc/role", f"{role}\n")
    yield made
    for host in made:
        host.stop()


class Project:
    """A project for some hosts, and the command in it."""

    def __init__(self, base: Path, hosts: list[lab.Host], place: str) -> None:
        self.base, self.hosts, self.place = base, hosts, place
        reach(base, hosts)
        self.write("statecfg.toml", 'name = "facts"\n')
        self.write("facts/role.py", ROLE)
        self.write("playbooks/site.yml", PLAY.format(place=place))

    def write(self, name: str, text: str) -> None:
        (self.base / name).parent.mkdir(parents=True, exist_ok=True)
        (self.base / name).write_text(textwrap.dedent(text))

    def __call__(self, verb: str, *arguments: str, code: int = 0, **env: str) -> Ran:
        config = ["--ssh-config", str(self.base / "ssh_config")] if verb not in ("validate", "graph", "show") else []
        own = {"STATECFG_STORE": str(self.base / "store.db"), "XDG_STATE_HOME": str(self.base / "state")}
        return statecfg(verb, *arguments, *config, cwd=self.base, code=code, **{**own, **env})

    def prepared(self) -> prepare.Work:
        inventory = self.base / "inventory.yml"
        return prepare.playbook(self.base / "playbooks/site.yml", prepare.Choice(inventory))

    def there(self, name: str) -> list[bool]:
        """Return for each host whether a path exists."""
        return [host.run(["test", "-e", f"{self.place}/{name}"], check=False).returncode == 0 for host in self.hosts]


@pytest.fixture
def project(hosts: list[lab.Host], tmp_path: Path, place: str) -> Project:
    return Project(tmp_path, hosts, place)


def test_plan_equals_apply_and_a_second_apply_changes_nothing(project: Project) -> None:
    planned = project("plan", "playbooks/site.yml", "--json").json()
    applied = project("apply", "playbooks/site.yml", "--yes", "--json").json()
    for host in project.hosts:
        names = [
            [node["name"] for layer in report["hosts"][host.name]["layers"] for node in layer]
            for report in (planned, applied)
        ]
        assert names[0] == names[1]
        assert (f"symlink:{project.place}/main" in names[0]) == (host is project.hosts[0])
        kernel = host.run(["uname", "-r"]).stdout.strip()
        system = host.run(["sh", "-c", ". /etc/os-release; echo $ID"]).stdout.strip()
        assert host.read(f"{project.place}/os") == f"{system} {kernel}\n"
        assert host.read(f"{project.place}/role") == host.read("/etc/role")
    again = project("apply", "playbooks/site.yml", "--yes", "--json").json()
    assert {outcome for host in again["hosts"].values() for outcome in host["summary"]} == {"unchanged"}
    assert "pending" not in project("verify", "playbooks/site.yml").out


def test_a_changed_fact_changes_the_definition_and_destroy_restores_the_host(project: Project) -> None:
    first = project.hosts[0]
    project("apply", "playbooks/site.yml", "--yes")
    try:
        first.write("/etc/role", "spare\n")
        planned = project("plan", "playbooks/site.yml", "--prune")
        assert f"- symlink:{project.place}/main" in planned.out
        project("apply", "playbooks/site.yml", "--yes", "--prune")
        assert project.there("main") == [False, False, False]
    finally:
        first.write("/etc/role", "main\n")
    project("destroy", "playbooks/site.yml", "--yes")
    assert project.there("") == [False, False, False]


def test_one_invalid_definition_changes_nothing_anywhere(project: Project) -> None:
    free = project.hosts[2]
    plays = PLAY.format(place=project.place) + BAD.format(place=project.place)
    plays = "- " + textwrap.indent(plays.replace("hosts: all", f'hosts: "!{free.name}"'), "  ").lstrip()
    plays += f"- name: free\n  hosts: {free.name}\n  resources: [directory: {project.place}-free]\n"
    project.write("playbooks/free.yml", f"hosts: {free.name}\nresources: [directory: /srv]\n")
    project("apply", "playbooks/free.yml", "--yes")
    before = recorded_runs(free)
    project.write("playbooks/site.yml", plays)
    for options in ([], ["--forks", "1"]):
        ran = project("apply", "playbooks/site.yml", "--yes", *options, code=5)
        assert "'yellow' is not a mode" in ran.err
        assert f"on {project.hosts[0].name}" in ran.err
        assert "no host was changed" in ran.err
        assert project.there("os") == [False, False, False]
        assert free.run(["test", "-e", f"{project.place}-free"], check=False).returncode == 1
    # A host with nothing to do would only record its run, and not wait for permission.
    project.write("playbooks/site.yml", plays.replace(f"{project.place}-free", "/srv"))
    project("apply", "playbooks/site.yml", "--yes", code=5)
    assert recorded_runs(free) == before


def recorded_runs(host: lab.Host) -> str:
    """Return the number of runs in the ledger of a host, and the runs that are not in it yet."""
    count = "print(sqlite3.connect('/var/lib/statecfg/ledger.db').execute('select count(*) from run').fetchone())"
    appended = host.path("/var/lib/statecfg/ledger.appended")
    return host.run(["python3", "-c", f"import sqlite3; {count}"]).stdout + (
        appended.read_text() if appended.exists() else ""
    )


def test_a_failing_fact_fails_only_the_hosts_that_use_it(project: Project) -> None:
    user, _, free = project.hosts
    project.write("facts/role.py", 'def fact(world):\n    return world.read("/etc/no-role").decode()\n')
    project.write(
        "playbooks/site.yml",
        f"""\
        - name: uses
          hosts: {user.name}
          resources: [{{file: {project.place}-uses, content: "{{{{ host.facts.own.role }}}}"}}]
        - name: free
          hosts: {free.name}
          resources: [{{file: {project.place}-free, content: x}}]
        """,
    )
    report = project("apply", "playbooks/site.yml", "--yes", "--json", code=1).json()["hosts"]
    assert (report[user.name]["status"], report[free.name]["status"]) == ("failed", "ok")
    error = report[user.name]["error"]
    assert error["summary"].startswith("the fact `own.role` failed: facts/role.py:2: FileNotFoundError")
    assert error["detail"] == "Nothing was changed on this host."
    assert user.run(["test", "-e", f"{project.place}-uses"], check=False).returncode == 1
    assert free.read(f"{project.place}-free") == "x"


def test_facts_are_collected_without_lock_and_without_writing(project: Project) -> None:
    host = project.hosts[0]
    host.run(["rm", "-rf", "/var/lib/statecfg"])
    before = written_files(host)
    project("facts", host.name, "--record", "facts.json")
    allowed = ("var/lib/statecfg/cache/", "run/", "var/log/")  # a login writes to the last two
    assert [path for path, _ in written_files(host) - before if not path.startswith(allowed)] == []
    assert host.run(["test", "-e", "/var/lib/statecfg/lock"], check=False).returncode == 1


def written_files(host: lab.Host) -> set[tuple[str, int]]:
    """Return the paths and modification times of all files that differ from those of this machine."""
    upper = host.home / "upper"
    files = (path for path in upper.rglob("*") if path.is_file())
    return {(str(path.relative_to(upper)), path.stat().st_mtime_ns) for path in files}


def test_own_facts_run_as_the_user_that_statecfg_becomes(project: Project) -> None:
    host = project.hosts[0]
    add_user(host, "free", sudo="nopasswd")
    project.write("facts/uid.py", "import os\n\ndef fact():\n    return os.getuid()\n")
    uids = []
    for options in ([], ["-b"]):
        project("facts", host.name, "--record", "facts.json", "-u", "free", *options)
        recorded = json.loads((project.base / "facts.json").read_text())["hosts"][host.name]
        uids.append((recorded["own.uid"], recorded["user"]))
    assert uids[0] == (int(host.run(["id", "-u", "free"]).stdout), "free")
    assert uids[1] == (0, "root")


def test_many_hosts_with_facts_need_few_slots(project: Project) -> None:
    report = project("apply", "playbooks/site.yml", "--yes", "--forks", "1", "--json").json()
    assert {host["status"] for host in report["hosts"].values()} == {"ok"}


def test_an_unreachable_host_does_not_stop_the_others(project: Project) -> None:
    text = (project.base / "inventory.yml").read_text()
    (project.base / "inventory.yml").write_text(text + "  gone: {address: 127.0.0.1, port: 1}\n")
    report = project("apply", "playbooks/site.yml", "--yes", "--json", code=4).json()["hosts"]
    assert report["gone"]["status"] == "unreachable"
    assert {report[host.name]["status"] for host in project.hosts} == {"ok"}


def test_a_saved_plan_is_refused_by_the_hosts_whose_facts_changed(project: Project) -> None:
    first = project.hosts[0]
    project("plan", "playbooks/site.yml", "--out", "site.plan")
    try:
        first.write("/etc/role", "spare\n")
        ran = project("apply", "site.plan", "--json", code=6)
        report = ran.json()["hosts"]
        assert report[first.name]["differs"][0] == 'fact own.role: planned "main"; now "spare"'
        assert report[first.name]["status"] == "refused"
        assert {report[host.name]["status"] for host in project.hosts[1:]} == {"ok"}
        assert project.there("role") == [False, True, True]
    finally:
        first.write("/etc/role", "main\n")
    project("plan", "playbooks/site.yml", "--out", "next.plan")
    assert "Applied: 4 added" in project("apply", "next.plan").out


def test_a_saved_plan_is_stale_if_a_template_that_facts_select_changed(project: Project) -> None:
    play = PLAY.format(place=project.place) + (
        f"  - file: {project.place}/more\n    template: more.j2\n    when: host.facts.own.role == 'main'\n"
        f'    requires: ["directory:{project.place}"]\n'
    )
    project.write("playbooks/site.yml", play)
    project.write("templates/more.j2", "{{ host.name }}\n")
    project("plan", "playbooks/site.yml", "--out", "site.plan")
    project.write("templates/more.j2", "{{ host.name }}!\n")
    assert "≠ template templates/more.j2: has changed" in project("apply", "site.plan", code=6).err
    project.write("templates/more.j2", "{{ host.name }}\n")
    project.write("facts/role.py", ROLE + "\n")
    assert "≠ fact facts/role.py: has changed" in project("apply", "site.plan", code=6).err


def test_validate_and_graph_use_recorded_facts(project: Project) -> None:
    told = project("validate", "playbooks/site.yml").out
    assert "no problems found so far" in told
    assert re.search(r"^  playbooks/site\.yml:\d+:\d+: depends on the facts own\.role$", told, re.M)
    drawn = project("graph", "playbooks/site.yml")
    assert f"directory:{project.place}" in drawn.out
    assert "main" not in drawn.out
    assert "depends on the facts own.role" in drawn.err
    project("facts", "--record", "facts.json")
    recorded = json.loads((project.base / "facts.json").read_text())["hosts"]
    assert recorded[project.hosts[0].name]["own.role"] == "main"
    told = project("validate", "playbooks/site.yml", "--facts", "facts.json").out
    assert "11 resources on 3 hosts" not in told  # 4 on the first host, 3 on the others
    assert "10 resources on 3 hosts, no problems found\n" in told
    assert "uses recorded facts, less than a minute old: kernel, os, own.role" in told
    assert f"symlink:{project.place}/main" in project("graph", "playbooks/site.yml", "--facts", "facts.json").out
    link = f"symlink:{project.place}/main"
    assert "pass --facts last" in project("explain", link, "playbooks/site.yml", code=5).err
    assert link in project("explain", link, "playbooks/site.yml", "--facts", "facts.json").out
    assert link in project("explain", link, "--facts", "facts.json").out
    assert "depends on" in project("validate", "playbooks/site.yml", "--facts", "last").out
    project("apply", "playbooks/site.yml", "--yes")
    assert "10 resources on 3 hosts" in project("validate", "playbooks/site.yml", "--facts", "last").out
    (project.base / "facts.json").write_text('{"format": 1, "hosts": {"web1": {"cpus": "4"}}}')
    wrong = project("validate", "playbooks/site.yml", "--facts", "facts.json", code=5).err
    assert "web1: cpus must be a number" in wrong


def test_secrets_that_facts_select_are_masked(project: Project) -> None:
    project.write(
        "playbooks/site.yml",
        f"""\
        hosts: {project.hosts[0].name}
        vars: {{word: !secret {{env: WORD}}}}
        resources:
          - file: {project.place}-secret
            content: "word {{{{ word }}}}\\n"
            when: host.facts.own.role == "main"
        """,
    )
    ran = project("apply", "playbooks/site.yml", "--yes", "--diff", WORD="open-sesame")
    assert project.hosts[0].read(f"{project.place}-secret") == "word open-sesame\n"
    assert "open-sesame" not in ran.out + ran.err
    assert "<secret WORD>" in ran.out


def seconds(project: Project, access: fleet.Access, relays: dict[str, Relay], value: str) -> float:
    """Apply a playbook twice; return the seconds of the second run after the login, on the slowest host.

    :param relays: the relay to each host, which delays the second run after the login
    """
    text = f'hosts: all\nresources: [{{file: {project.place}-trips, content: "{value}"}}]\n'
    project.write("playbooks/site.yml", text)
    times: dict[str, float] = {}

    def run(delay: float) -> None:
        def note(event: fleet.Event) -> None:
            times[f"{event.name} {event.host}"] = time.monotonic()
            if event.name == "connected":
                relays[event.host].delay = delay

        work = project.prepared()
        report = fleet.run(work.jobs, fleet.Options(mode="apply", access=access), note, work.awaited)
        assert {one["status"] for one in report["hosts"].values()} == {"ok"}

    run(0.0)
    run(DELAY / 2)
    for relay in relays.values():
        relay.delay = 0.0
    return max(times[f"finished {name}"] - times[f"connected {name}"] for name in relays)


def test_facts_cost_one_round_trip(project: Project, tmp_path: Path) -> None:
    other = f"{{{{ hosts['{project.hosts[1].name}'].facts.kernel }}}}"
    values = ("x", "{{ host.facts.kernel }}", "{{ host.facts.own.role if host.facts.cpus else '' }}", other)
    cost = 99.0
    for _ in range(3):  # a busy machine may delay some of the measurements
        with Relay(project.hosts[0]) as one, Relay(project.hosts[1]) as two:
            targets = [relay.seen(tmp_path / f"known{number}") for number, relay in enumerate((one, two))]
            reach(project.base, targets)
            relays = {target.name: relay for target, relay in zip(targets, (one, two), strict=True)}
            access = fleet.Access(settings(*targets))
            plain, *others = [seconds(project, access, relays, value) for value in values]
        cost = min(cost, (max(others) - plain) / DELAY)
        if cost < 1.4:
            break
    print(f"round trips for facts: {cost:.2f}")
    assert cost < 1.4


def other_hosts(project: Project) -> None:
    """Write a playbook whose definitions read all hosts, one with the facts of the last one."""
    last = project.hosts[-1].name
    project.write(
        "playbooks/others.yml",
        f"""\
        hosts: all
        resources:
          - file: {project.place}-roles
            content: "{{% for one in groups.all %}}{{{{ one }}}} {{{{ one.facts.own.role }}}}\\n{{% endfor %}}"
          - file: {project.place}-last
            content: "{{{{ hosts['{last}'].address }}}} {{{{ hosts['{last}'].facts.own.role }}}}\\n"
        """,
    )


def test_definitions_read_facts_of_other_hosts_of_the_run(project: Project) -> None:
    other_hosts(project)
    project("plan", "playbooks/others.yml", "--out", "others.plan")
    first, _, last = project.hosts
    shown = project("show", "others.plan", "-v").out
    assert "9 × fact of a host" in shown
    assert f'fact of {first.name}: hosts[{last.name}].own.role = "spare"' in shown
    assert f'fact of {first.name}: own.role = "main"' in shown
    try:
        last.write("/etc/role", "other\n")
        report = project("apply", "others.plan", "--json", code=6).json()["hosts"]
        assert report[first.name]["differs"][0] == f'fact hosts[{last.name}].own.role: planned "spare"; now "other"'
        assert report[last.name]["differs"][0] == 'fact own.role: planned "spare"; now "other"'
        assert {host["status"] for host in report.values()} == {"refused"}
    finally:
        last.write("/etc/role", "spare\n")
    project("apply", "others.plan")
    names = sorted((host.name, role) for host, role in zip(project.hosts, ("main", "spare", "spare"), strict=True))
    for host in project.hosts:
        assert host.read(f"{project.place}-roles") == "".join(f"{name} {role}\n" for name, role in names)
        assert host.read(f"{project.place}-last") == f"{last.address} spare\n"
    again = project("apply", "playbooks/others.yml", "--yes", "--json").json()
    assert {outcome for host in again["hosts"].values() for outcome in host["summary"]} == {"unchanged"}
    project("destroy", "playbooks/others.yml", "--yes")
    assert first.run(["test", "-e", f"{project.place}-last"], check=False).returncode == 1


@pytest.mark.parametrize("forks", ["16", "1"])
def test_a_host_is_asked_again_for_a_fact_that_another_host_needs(project: Project, forks: str) -> None:
    project.write(
        "playbooks/hidden.py",
        f"""\
        from statecfg import groups, play
        from statecfg.resources import file

        @play(hosts="all")
        def hidden(host):
            last = groups.all[-1]
            if host.name != last.name and last.facts.own.role == "spare":
                return file("{project.place}-hidden", content=getattr(last.facts, "ker" "nel"))
        """,
    )
    project("apply", "playbooks/hidden.py", "--yes", "--forks", forks)
    *others, last = sorted(project.hosts, key=lambda host: host.name)
    for host in others:
        assert host.read(f"{project.place}-hidden") == last.run(["uname", "-r"]).stdout.strip()
    assert last.run(["test", "-e", f"{project.place}-hidden"], check=False).returncode == 1


def test_facts_of_hosts_outside_the_run_come_from_the_store(project: Project) -> None:
    other_hosts(project)
    first, second, last = project.hosts
    limited = ("playbooks/others.yml", "--limit", first.name)
    refused = project("plan", *limited, code=5).err
    assert f"the fact `own.role` of {last.name} is not known, and this run does not visit {last.name}" in refused
    project("facts", f"{second.name},{last.name}", "--record", "last")
    planned = project("plan", *limited, "--json").json()["hosts"][first.name]
    assert f"uses recorded facts of {last.name}, less than a minute old: own.role" in planned["warnings"]
    refused = project("plan", *limited, "--max-fact-age", "PT0S", code=5).err
    assert "is less than a minute old, and --max-fact-age allows less than a minute" in refused
    project("plan", *limited, "--out", "first.plan")
    try:
        last.write("/etc/role", "other\n")
        project("facts", last.name, "--record", "last")
        differs = project("apply", "first.plan", "--json", code=6).json()["hosts"][first.name]["differs"]
        assert differs[0] == f'fact hosts[{last.name}].own.role: planned "spare"; now "other"'
    finally:
        last.write("/etc/role", "spare\n")
    project("facts", last.name, "--record", "last")
    ran = project("apply", "first.plan")
    assert f"uses recorded facts of {last.name}, less than a minute old" in ran.out
    assert first.read(f"{project.place}-last") == f"{last.address} spare\n"
    validated = project("validate", "playbooks/others.yml", "--facts", "last").out
    assert "6 resources on 3 hosts, no problems found\n" in validated
    assert f"{second.name}: uses recorded facts of {last.name}, less than a minute old: own.role" in validated


def test_an_unreachable_host_fails_those_that_need_its_facts(project: Project) -> None:
    first = project.hosts[0]
    text = (project.base / "inventory.yml").read_text()
    (project.base / "inventory.yml").write_text(text + "  gone: {address: 127.0.0.1, port: 1}\n")
    project.write(
        "playbooks/site.yml",
        f"""\
        - name: needs
          hosts: {first.name}
          resources: [{{file: {project.place}-needs, content: "{{{{ hosts.gone.facts.kernel }}}}"}}]
        - name: others
          hosts: "!{first.name}"
          resources: [{{file: {project.place}-free, content: "{{{{ host.facts.kernel }}}}"}}]
        """,
    )
    report = project("apply", "playbooks/site.yml", "--yes", "--json", code=1).json()["hosts"]
    assert report[first.name]["error"]["summary"] == (
        "its definition needs the fact `hosts[gone].kernel`, and gone could not be asked"
    )
    assert report["gone"]["status"] == "unreachable"
    assert {report[host.name]["status"] for host in project.hosts[1:]} == {"ok"}


def test_code_for_facts_is_sent_only_to_hosts_that_need_it() -> None:
    part = set(sent.unpacked(bundle.first_parts("plan", True)[0].data))
    assert "statecfg.remote.facts.network" in part
    assert not part & set(host_modules.core())
    assert not [name for name in host_modules.core() if name.startswith("statecfg.remote.facts")]


def test_a_fact_that_makes_a_template_grow_fails_only_its_host(project: Project) -> None:
    """The other hosts get their definition; the error names the line of the template."""
    bad, *good = project.hosts
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 10))
    for host in project.hosts:
        host.write("/etc/cfg", bomb if host is bad else "a: &a 1\nb: *a\n")
    project.write("facts/cfg.py", 'def fact(world):\n    return world.read("/etc/cfg").decode()\n')
    text = "{{ host.facts.own.cfg | from_yaml | to_json }}\n"
    project.write(
        "playbooks/site.yml",
        f"hosts: all\nresources:\n  - file: {project.place}-cfg\n    content: |\n      first\n      {text}",
    )
    report = project("apply", "playbooks/site.yml", "--yes", "--json", code=1).json()["hosts"]
    assert report[bad.name]["status"] == "failed"
    error = report[bad.name]["error"]
    assert error["summary"] == "playbooks/site.yml:6: a value gets more than 500,000 items"
    assert bad.run(["test", "-e", f"{project.place}-cfg"], check=False).returncode == 1
    for host in good:
        assert report[host.name]["status"] == "ok"
        assert host.read(f"{project.place}-cfg") == 'first\n{"a": 1, "b": 1}\n'


def test_a_fact_that_would_be_code_fails_only_the_host_that_uses_it(project: Project) -> None:
    """A host that says `$(touch …)` runs nothing anywhere; quoted, it is the text that it is."""
    bad, *good = project.hosts
    bad.write("/etc/said", f"$(touch {project.place}-pwned)\n")
    for host in good:
        host.write("/etc/said", f"{host.name}\n")
    project.write("facts/said.py", 'def fact(world):\n    return world.read("/etc/said").decode().strip()\n')
    play = """\
        hosts: all
        resources:
          - command: greet
            shell: "echo peer {{{{ host.facts.own.said{quote} }}}} > {place}-peer"
            creates: {place}-peer
            effects: {{}}
        """
    project.write("playbooks/site.yml", play.format(place=project.place, quote=""))
    report = project("apply", "playbooks/site.yml", "--yes", "--json", code=1).json()["hosts"]
    assert [report[host.name]["status"] for host in project.hosts] == ["failed", "ok", "ok"]
    assert report[bad.name]["error"]["summary"].startswith("playbooks/site.yml:4: command:greet: '$(touch ")
    assert good[0].read(f"{project.place}-peer") == f"peer {good[0].name}\n"
    project.write("playbooks/site.yml", play.format(place=project.place, quote=" | quote"))
    project("apply", "playbooks/site.yml", "--yes")
    assert bad.read(f"{project.place}-peer") == f"peer $(touch {project.place}-pwned)\n"
    for host in project.hosts:
        assert host.run(["test", "-e", f"{project.place}-pwned"], check=False).returncode == 1
