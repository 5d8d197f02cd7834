"""`hosts` and `groups` in definitions: names, addresses, variables and facts of other hosts."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

import statecfg
from statecfg.problems import InvalidInput
from statecfg.run import prepare
from statecfg.run.awaited import MENTION, REACH, RefusedHost
from statecfg.run.choice import KnownFacts
from tests.unit.facts.test_definitions import awaited, contents, recorded

INVENTORY = """\
hosts:
  web2: {address: 192.0.2.2}
  web1: {address: 192.0.2.1, vars: {port: 81}}
  db1: {address: 192.0.2.9}
groups:
  web: {hosts: [web2, web1], vars: {port: 80}}
  db: {hosts: [db1]}
  all-of-it: {groups: [web, db]}
"""
YAML = """\
hosts: web
resources:
  - file: /etc/a
    content: |
      {% for web in groups.web %}
      {{ web }} {{ web.name }} {{ web.address }} {{ web.vars.port }} {{ web.groups | join(",") }}
      {% endfor %}
      {{ hosts | join(" ") }} {{ groups | join(" ") }} {{ hosts["db1"].address }} {{ 'db1' in groups.db }}
"""
PYTHON = """\
from statecfg import groups, hosts, play
from statecfg.resources import file

@play(hosts="web")
def web(host):
    lines = [f"{web} {web.name} {web.address} {web.vars.port} {','.join(web.groups)}" for web in groups.web]
    ends = [" ".join(hosts), " ".join(groups), hosts["db1"].address, str("db1" in groups.db)]
    return file("/etc/a", content="\\n".join([*lines, " ".join(ends)]) + "\\n")
"""
HY = """\
(require statecfg.dialects.hy [defplay])
(import statecfg [groups hosts])
(import statecfg.resources [file])

(defplay web [host] {:hosts "web"}
  (setv lines (lfor web groups.web f"{web} {web.name} {web.address} {web.vars.port} {(.join "," web.groups)}")
        ends [(.join " " hosts) (.join " " groups) (. hosts ["db1"] address) (str (in "db1" (get groups "db")))])
  (file "/etc/a" :content (+ (.join "\\n" [#* lines (.join " " ends)]) "\\n")))
"""
EXPECTED = """\
web1 web1 192.0.2.1 81 all-of-it,web
web2 web2 192.0.2.2 80 all-of-it,web
db1 web1 web2 all all-of-it db web 192.0.2.9 True
"""
ADDRESS = """\
hosts: web
resources:
  - file: /etc/a
    content: "{{ hosts.db1.facts.ipv4 }}"
"""
MEMBER = """\
from __future__ import annotations

from typing import Any, Unpack

from statecfg import Action, HostNode, Name, NodeOptions, World, node_type


@node_type
def member(name: Name, **options: Unpack[NodeOptions]) -> None:
    \"\"\"Be a member.\"\"\"


@member.needs
def needs(attrs: dict[str, Any]) -> list[str]:
    from statecfg import hosts

    return ["path:" + hosts.db1.facts.ipv4]


@member.check
def check(node: HostNode, world: World) -> list[Action]:
    return []
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "inventory.yml").write_text(INVENTORY)
    (tmp_path / "playbooks").mkdir()
    return tmp_path


def prepared(project: Path, text: str, ending: str = "yml", **choice: Any) -> prepare.Work:
    path = project / "playbooks" / f"play.{ending}"
    path.write_text(textwrap.dedent(text))
    known = KnownFacts(**{key: choice.pop(key) for key in ("facts", "stored", "oldest") if key in choice})
    return prepare.playbook(path, prepare.Choice(**choice, known=known))


def problems(project: Path, text: str, ending: str = "yml", **choice: Any) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        prepared(project, text, ending, **choice)
    return [f"{one.code} {one.locations[0].line} {one.detail}" for one in caught.value.problems]


def written(work: prepare.Work) -> dict[str, Any]:
    return {job.host.name: contents(job)["file:/etc/a"] for job in work.jobs}


@pytest.mark.parametrize(("text", "ending"), [(YAML, "yml"), (PYTHON, "py"), (HY, "hy")])
def test_definitions_read_all_hosts_in_a_stable_order(project: Path, text: str, ending: str) -> None:
    work = prepared(project, text, ending)
    assert written(work) == {"web1": EXPECTED, "web2": EXPECTED}
    assert work.awaited is None


def test_templates_read_other_hosts(project: Path) -> None:
    (project / "templates").mkdir()
    lines = "{% for name, one in hosts.items() %}{{ one.address }} {{ name }}\n{% endfor %}"
    (project / "templates/a.j2").write_text(lines)
    text = "hosts: db\nresources: [{file: /etc/a, template: a.j2}]\n"
    assert written(prepared(project, text)) == {"db1": "192.0.2.9 db1\n192.0.2.1 web1\n192.0.2.2 web2\n"}


def test_loops_and_variables_keep_hosts(project: Path) -> None:
    text = """\
    hosts: db
    vars: {first: "{{ groups.web[0] }}", all: "{{ groups['web'] }}"}
    resources:
      - file: "/etc/{{ item }}"
        content: "{{ item.address }} {{ first.address }} {{ all | map(attribute='name') | join }}"
        for_each: groups.web
    """
    (job,) = prepared(project, text).jobs
    assert contents(job) == {
        "file:/etc/web1": "192.0.2.1 192.0.2.1 web1web2",
        "file:/etc/web2": "192.0.2.2 192.0.2.1 web1web2",
    }


def test_variables_of_the_command_line_override_those_of_other_hosts(project: Path) -> None:
    text = 'hosts: db\nresources: [{file: /etc/a, content: "{{ hosts.web1.vars.port }}"}]\n'
    assert written(prepared(project, text, extra={"port": 99})) == {"db1": "99"}


def test_own_variables_named_hosts_and_groups_win(project: Path) -> None:
    text = "hosts: db\nvars: {hosts: mine, groups: too}\nresources:\n"
    text += '  - {file: /etc/a, content: "{{ hosts }} {{ groups }}"}\n'
    assert written(prepared(project, text)) == {"db1": "mine too"}


def test_unknown_hosts_and_groups_are_errors(project: Path) -> None:
    text = 'hosts: db\nresources: [{file: /etc/a, content: "{{ %s }}"}]\n'
    assert problems(project, text % "hosts.web3.address") == ["SC0321 2 `hosts` has no key `web3`"]
    assert problems(project, text % "groups.wep | first") == ["SC0321 2 `groups` has no key `wep`"]
    code = PYTHON.replace("in groups.web]", "in groups.wep]")
    assert problems(project, code, "py") == ["SC0404 6 the inventory has no group `wep`"]
    code = PYTHON.replace('hosts["db1"].address', 'hosts["db2"].address')
    assert problems(project, code, "py") == ["SC0404 7 the inventory has no host `db2`"]
    code = PYTHON.replace('hosts["db1"].address', 'str(hosts.get("db2"))')
    assert written(prepared(project, code, "py"))["web1"].splitlines()[-1].endswith("None True")


def test_hosts_are_unknown_outside_of_plays(project: Path) -> None:
    code = PYTHON.replace("from statecfg.resources", 'first = hosts["db1"]\nfrom statecfg.resources')
    assert problems(project, code, "py") == ["SC0505 2 `hosts` and `groups` are known only while a play is evaluated"]
    with pytest.raises(InvalidInput):
        len(statecfg.groups)


def test_facts_of_hosts_in_the_run_are_collected_in_it(project: Path) -> None:
    text = "- " + textwrap.indent(ADDRESS, "  ").lstrip() + "- {hosts: db, resources: [{file: /etc/a, content: x}]}\n"
    work = prepared(project, text, stored=lambda: pytest.fail("the store is not needed"))
    assert {job.host.name: job.needs for job in work.jobs} == dict.fromkeys(("web1", "web2", "db1"), ("ipv4",))
    waiting = awaited(work)
    assert waiting.add("web1", {"ipv4": "192.0.2.1"}) == {}
    assert waiting.add("db1", {"ipv4": "192.0.2.9"}) == {}
    assert waiting.waiting_for_facts
    assert waiting.add("web2", {"ipv4": "192.0.2.2"}) == {}
    assert not waiting.waiting_for_facts
    jobs = waiting.finish()
    assert {name: contents(job)["file:/etc/a"] for name, job in jobs.items()} == {
        "web1": "192.0.2.9",
        "web2": "192.0.2.9",
        "db1": "x",
    }
    assert work.facts.used("web1") == {"hosts[db1].ipv4": "192.0.2.9"}
    assert work.facts.used("db1") == {}


@pytest.mark.parametrize(
    ("kept", "read"),
    [("hosts.db1", "db().facts.ipv4"), ("groups.db", "db()[0].facts.ipv4"), ("hosts.db1.facts", "db().ipv4")],
)
def test_each_definition_records_what_it_reads_from_a_cached_host(project: Path, kept: str, read: str) -> None:
    code = f"""\
    import functools
    from statecfg import groups, hosts, play
    from statecfg.resources import file

    @functools.cache
    def db():
        return {kept}

    @play(hosts="web")
    def web(host):
        return file("/etc/a", content={read})
    """
    stored = {"db1": recorded({"ipv4": "192.0.2.9"})}
    work = prepared(project, code, "py", stored=lambda: stored)
    for name in ("web1", "web2"):
        assert work.facts.used(name) == {"hosts[db1].ipv4": "192.0.2.9"}
    assert written(work) == {"web1": "192.0.2.9", "web2": "192.0.2.9"}


def test_each_definition_records_what_it_reads_from_cached_variables(project: Path) -> None:
    code = """\
    import functools
    from statecfg import hosts, play
    from statecfg.resources import file

    @functools.cache
    def variables():
        return hosts.web1.vars

    @play(hosts="web")
    def web(host):
        return file("/etc/a", content=str(variables().port))
    """
    work = prepared(project, code, "py")
    for name in ("web1", "web2"):
        assert set(work.facts.readings[name].variables) == {"hosts[web1].vars.port"}


def test_a_cached_node_that_lacks_facts_is_refused(project: Path) -> None:
    """The first evaluation declares the node without a fact, and a cache keeps it for the second one."""
    (project / "roles/base").mkdir(parents=True)
    (project / "roles/base/role.yml").write_text(
        "resources:\n  - {file: /etc/a, content: '{{ host.facts.hostname }}'}\n"
    )
    code = """\
    import functools
    from statecfg import include, play
    from statecfg.resources import file

    @functools.cache
    def base():
        return include("base")

    @play(hosts="db")
    def db(host):
        return [base(), file("/etc/b", content="x")]
    """
    waiting = awaited(prepared(project, code, "py"))
    assert waiting.add("db1", {"hostname": "d"}) == {}
    with pytest.raises(InvalidInput) as caught:
        waiting.finish()
    (problem,) = caught.value.problems
    assert (problem.code, problem.locations[0].line) == ("SC0505", 2)
    assert problem.detail == "file:/etc/a is from an earlier evaluation of the play, which lacked facts"


def test_a_cached_node_that_is_wrong_is_one_problem(project: Path) -> None:
    code = """\
    import functools
    from statecfg import play
    from statecfg.resources import file

    @functools.cache
    def wrong():
        return file("/etc/a", mode="yellow")

    @play(hosts="web")
    def web(host):
        return [wrong(), file("/etc/b", content=host.name)]
    """
    (found,) = problems(project, code, "py")
    assert found.startswith("SC0202 7 ")


def test_a_host_is_asked_again_for_what_another_host_needs(project: Path) -> None:
    code = """\
    from statecfg import groups, play
    from statecfg.resources import file

    @play(hosts="all")
    def web(host):
        if host.name == "web1" and groups.db[0].facts.cpus > 1:
            return file("/etc/a", content=getattr(groups.db[0].facts, "hostn" "ame"))
    """
    work = prepared(project, code, "py")
    assert {job.host.name: job.needs for job in work.jobs} == dict.fromkeys(("web1", "web2", "db1"), ("cpus",))
    waiting = awaited(work)
    for host in ("web1", "web2"):
        assert waiting.add(host, {"cpus": 1}) == {}
    assert waiting.add("db1", {"cpus": 2}) == {"db1": ("hostname",)}
    assert waiting.waiting_for_facts
    assert waiting.add("db1", {"hostname": "d"}) == {}
    assert contents(waiting.finish()["web1"]) == {"file:/etc/a": "d"}


def test_a_fact_that_is_needed_too_late_fails_the_host(project: Path) -> None:
    code = """\
    import statecfg
    from statecfg import play
    from statecfg.resources import file

    all_of_them = getattr(statecfg, "hosts")

    @play(hosts="all")
    def web(host):
        if host.name == "web1" and host.facts.cpus > 1:
            return file("/etc/a", content=all_of_them["db1"].facts.ipv4)
    """
    waiting = awaited(prepared(project, code, "py"))
    assert set(waiting.names) == {"web1"}
    assert waiting.add("web1", {"cpus": 2}) == {}
    why = "its definition needs the fact `hosts[db1].ipv4` too late to ask db1"
    assert waiting.finish() == {"web1": RefusedHost(why, hint=MENTION)}


def test_a_lost_host_fails_only_those_that_need_its_facts(project: Path) -> None:
    text = "- " + textwrap.indent(ADDRESS.replace("hosts: web", "hosts: web1"), "  ").lstrip()
    text += "- {hosts: web2, resources: [{file: /etc/a, content: '{{ host.facts.ipv4 }}'}]}\n"
    text += "- {hosts: db, resources: [{file: /etc/a, content: x}]}\n"
    waiting = awaited(prepared(project, text))
    assert waiting.lost("db1") == {}
    for host in ("web1", "web2"):
        waiting.add(host, {"ipv4": "192.0.2.2"})
    steps = waiting.finish()
    why = "its definition needs the fact `hosts[db1].ipv4`, and db1 could not be asked"
    assert steps["web1"] == RefusedHost(why, hint=REACH)
    assert contents(steps["web2"]) == {"file:/etc/a": "192.0.2.2"}
    assert "db1" not in steps


def test_facts_of_hosts_outside_the_run_come_from_the_store(project: Path) -> None:
    known = {"db1": recorded({"ipv4": "192.0.2.9"}, age=7200)}
    work = prepared(project, ADDRESS, stored=lambda: known)
    assert work.awaited is None
    assert written(work) == {"web1": "192.0.2.9", "web2": "192.0.2.9"}
    assert work.facts.used("web1") == {"hosts[db1].ipv4": "192.0.2.9"}
    assert set(work.facts.readings["web1"].recorded["db1"].times) == {"ipv4"}
    assert written(prepared(project, ADDRESS, stored=lambda: known, oldest=7300.0))["web1"] == "192.0.2.9"
    assert problems(project, ADDRESS, stored=lambda: known, oldest=3600.0) == [
        "SC0523 4 the fact `ipv4` of db1 is 2 hours old, and --max-fact-age allows 1 hour"
    ]
    assert problems(project, ADDRESS, stored=dict) == [
        "SC0523 4 the fact `ipv4` of db1 is not known, and this run does not visit db1"
    ]


def test_without_a_run_facts_of_other_hosts_are_missing(project: Path) -> None:
    places = awaited(prepared(project, ADDRESS)).locations()
    assert [(place.line, *found) for place, found in places.items()] == [(4, {"hosts[db1].ipv4"}, {"web1", "web2"})]
    given = {"db1": recorded({"ipv4": "192.0.2.9"})}
    assert written(prepared(project, ADDRESS, facts=given)) == {"web1": "192.0.2.9", "web2": "192.0.2.9"}


def test_hosts_without_tagged_resources_are_outside_the_run(project: Path) -> None:
    text = "- " + textwrap.indent(ADDRESS + "    tags: [t]\n", "  ").lstrip()
    text += "- {hosts: db, resources: [{file: /etc/b, content: x}]}\n"
    work = prepared(project, text, tags=["t"], stored=lambda: {"db1": recorded({"ipv4": "192.0.2.9"})})
    assert work.awaited is None
    assert written(work) == {"web1": "192.0.2.9", "web2": "192.0.2.9"}


def test_functions_of_node_types_read_hosts_in_runs_of_some_tags(project: Path) -> None:
    """`needs` and `identity` run after the play. What they read is recorded like everything else."""
    (project / "resources").mkdir()
    (project / "resources/member.py").write_text(MEMBER)
    code = """\
    from statecfg import play
    from statecfg.resources import file, member

    @play(hosts="web")
    def web(host):
        return [file("/etc/a", content="x"), member("one", tags=["t"]), file("/etc/b", content="x")]
    """
    stored = {"db1": recorded({"ipv4": "/etc/a"})}
    for tags in (), ("t",):
        work = prepared(project, code, "py", tags=tags, stored=lambda: stored)
        assert work.facts.used("web1") == {"hosts[db1].ipv4": "/etc/a"}
        (job, _) = work.jobs
        names = {node["provides"] for layer in job.definition.layers for node in layer}
        assert names == {"file:/etc/a", "member:one", *([] if tags else ["file:/etc/b"])}
        work = prepared(project, code.replace('"web"', '"all"'), "py", tags=tags)
        assert {job.host.name: job.needs for job in work.jobs}["db1"] == ("ipv4",)
        waiting = awaited(work)
        for name in ("web1", "web2"):
            assert waiting.add(name, {}) == {}
        assert waiting.add("db1", {"ipv4": "/etc/a"}) == {}
        assert set(contents(waiting.finish()["web1"])) == names


def test_reads_of_variables_are_recorded(project: Path) -> None:
    text = """\
    hosts: web1
    vars: {used: 1, unused: 2}
    resources:
      - file: /etc/a
        content: "{{ used }} {{ hosts.web2.vars.port }} {{ item }}"
        for_each: [1]
    """
    work = prepared(project, text)
    assert set(work.facts.readings["web1"].variables) == {"used", "hosts[web2].vars.port"}
    code = PYTHON.replace("lines =", "_ = host.vars.port\n    lines =")
    work = prepared(project, code, "py", limit="web1")
    assert set(work.facts.readings["web1"].variables) == {"port", "hosts[web1].vars.port", "hosts[web2].vars.port"}


class Hooks:
    """Hooks that record for which hosts they are called."""

    unsure = ()

    def __init__(self) -> None:
        self.called: list[str] = []

    def concerns(self, host: str) -> list[str]:
        return ["audit"] if host != "db1" else []

    def reshape(self, host: Any, playbook: str, graph: Any, variables: Any, secrets: Any) -> Any:
        assert statecfg.hosts.db1.address == "192.0.2.9"
        self.called.append(host.name)
        return graph


def test_hooks_are_called_when_all_definitions_are_valid(project: Path) -> None:
    plays = "- {hosts: web1, resources: [{file: /etc/a, content: x}]}\n- hosts: db\n  resources:\n"
    plays += "    - {file: /etc/a, content: x, mode: '{{ host.facts.hostname }}'}\n"
    path = project / "playbooks/play.yml"
    path.write_text(plays)
    for mode, called in (("yellow", []), ("0644", ["web1"])):
        hooks = Hooks()
        waiting = awaited(prepare.playbook(path, prepare.Choice(), hooks))
        assert hooks.called == []
        assert set(waiting.names) == {"web1", "db1"}
        waiting.add("web1", {"hostname": "w"})
        waiting.add("db1", {"hostname": mode})
        if called:
            waiting.finish()
        else:
            with pytest.raises(InvalidInput):
                waiting.finish()
        assert hooks.called == called
    path.write_text("hosts: all\nresources: [{file: /etc/a, content: x}]\n")
    hooks = Hooks()
    assert prepare.playbook(path, prepare.Choice(), hooks).awaited is None
    assert sorted(hooks.called) == ["web1", "web2"]
