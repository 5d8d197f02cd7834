"""Definitions that depend on facts: what is checked before a connection, what is asked for, and the result."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from statecfg.facts.recorded import StoredFacts
from statecfg.problems import InvalidInput
from statecfg.run import prepare
from statecfg.run.awaited import CORRECT, Awaited, RefusedHost
from statecfg.run.choice import KnownFacts
from tests.unit.facts.test_view import KNOWN, OS

YAML = """\
hosts: all
vars: {family: "{{ host.facts.os.family }}"}
resources:
  - file: /etc/plain
    content: plain
  - file: /etc/a
    content: "{{ family }} {{ host.facts.cpus }}"
  - package: nginx
    when: host.facts.os.family == "debian"
  - file: "/etc/{{ item.path | replace('/', '') }}root"
    content: "{{ item.type }}"
    for_each: host.facts.mounts
  - file: /etc/t
    template: t.j2
"""
TEMPLATE = "{{ host.facts.packages.nginx }} {{ host.facts.own.rack.name }} {{ 'x' in host.facts.packages }}\n"
PYTHON = """\
from statecfg import play
from statecfg.resources import file, package

@play(hosts="all")
def web(host):
    made = [file("/etc/plain", content="plain")]
    if host.facts.os.family == "debian":
        made.append(package("nginx"))
        made.append(file("/etc/a", content=f"{host.facts.os.family} {host.facts.cpus}"))
    return made
"""
HY = """\
(require statecfg.dialects.hy [defplay])
(import statecfg.resources [file package])
(defplay web [host] {:hosts "all"}
  [(file "/etc/plain" :content "plain")
   (when (= host.facts.os.family "debian")
     (file "/etc/a" :content f"{host.facts.os.family} {host.facts.cpus}"))])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {
        "inventory.yml": "hosts: [web1, web2]\n",
        "templates/t.j2": TEMPLATE,
        "facts/rack.py": "def fact(world):\n    return {'name': 'r7'}\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "playbooks").mkdir()
    return tmp_path


def prepared(project: Path, text: str, ending: str = "yml", **choice: Any) -> prepare.Work:
    path = project / "playbooks" / f"play.{ending}"
    path.write_text(textwrap.dedent(text))
    known = KnownFacts(**{key: choice.pop(key) for key in ("facts", "stored", "oldest") if key in choice})
    return prepare.playbook(path, prepare.Choice(**choice, known=known))


def recorded(values: Mapping[str, Any], age: float = 0.0) -> StoredFacts:
    """Return facts that were collected some seconds ago."""
    return StoredFacts(values, dict.fromkeys(values, time.time() - age))


def awaited(work: prepare.Work) -> Awaited:
    assert work.awaited is not None
    return work.awaited


def contents(job: Any) -> dict[str, Any]:
    """Return node → its content, or its whole attributes if it has none."""
    nodes = {node["provides"]: node["attrs"] for layer in job.definition.layers for node in layer}
    return {name: attrs["content"].get("text") if "content" in attrs else "" for name, attrs in nodes.items()}


def refused(project: Path, text: str, **choice: Any) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        prepared(project, text, **choice)
    return [f"{one.code} {one.locations[0].line} {one.detail}" for one in caught.value.problems]


def test_a_definition_without_facts_waits_for_nothing(project: Path) -> None:
    work = prepared(project, "hosts: all\nresources: [{file: /etc/a, content: x}]\n")
    assert work.awaited is None
    assert [job.needs for job in work.jobs] == [(), ()]


def test_the_first_request_names_all_facts_that_the_files_mention(project: Path) -> None:
    work = prepared(project, YAML)
    assert {job.needs for job in work.jobs} == {("cpus", "mounts", "os", "own.rack", "packages")}
    request = awaited(work).request(["os", "own.rack"])
    assert request["names"] == ["os", "own.rack"]
    assert request["own"]["rack"][0] == "facts/rack.py"


def test_only_nodes_that_need_no_facts_are_known_before(project: Path) -> None:
    (job, _) = prepared(project, YAML).jobs
    assert contents(job) == {"file:/etc/plain": "plain"}


def test_the_definition_is_complete_when_the_facts_are_known(project: Path) -> None:
    work = prepared(project, YAML)
    waiting = awaited(work)
    assert waiting.add("web1", KNOWN) == {}
    assert waiting.add("web2", {**KNOWN, "os": {**OS, "family": "redhat"}}) == {}
    jobs = waiting.finish()
    assert contents(jobs["web1"]) == {
        "file:/etc/plain": "plain", "file:/etc/a": "debian 4", "package:nginx": "", "file:/etc/root": "ext4",
        "file:/etc/t": "1.22 r7 False\n",
    }  # fmt: skip
    assert "package:nginx" not in contents(jobs["web2"])
    assert set(work.facts.used("web1")) == {
        "os.family", "cpus", "mounts", "packages[nginx]", "packages[x]", "own.rack",
    }  # fmt: skip


@pytest.mark.parametrize(("text", "ending"), [(PYTHON, "py"), (HY, "hy")])
def test_plays_in_python_and_hy_read_facts(project: Path, text: str, ending: str) -> None:
    work = prepared(project, text, ending, limit="web1")
    assert [job.needs for job in work.jobs] == [("cpus", "os")]
    ((location, (names, hosts)),) = awaited(work).locations().items()
    assert (Path(location.file).name, names, hosts) == (f"play.{ending}", {"os"}, {"web1"})
    assert awaited(work).add("web1", {"os": OS}) == {"web1": ("cpus",)}  # a host that sends only a part is asked again
    assert awaited(work).add("web1", {"cpus": 2}) == {}
    assert contents(awaited(work).finish()["web1"])["file:/etc/a"] == "debian 2"


def test_facts_that_code_hides_are_found_by_evaluating(project: Path) -> None:
    text = PYTHON.replace("{host.facts.cpus}", "{getattr(host.facts, 'hostn' 'ame')}")
    work = prepared(project, text, "py", limit="web1")
    assert [job.needs for job in work.jobs] == [("os",)]
    assert awaited(work).add("web1", {"os": OS}) == {"web1": ("hostname",)}


def test_code_that_swallows_exceptions_waits_for_facts(project: Path) -> None:
    text = """\
    from statecfg import play
    from statecfg.resources import file

    @play(hosts="all")
    def web(host):
        try:
            text = host.facts.hostname
        except Exception:
            text = "unknown"
        return [file("/etc/a", content=text)]
    """
    work = prepared(project, text, "py", limit="web1")
    assert [job.needs for job in work.jobs] == [("hostname",)]
    assert awaited(work).add("web1", {"hostname": "w"}) == {}
    assert contents(awaited(work).finish()["web1"]) == {"file:/etc/a": "w"}


def test_what_needs_no_facts_is_checked_before_any_connection(project: Path) -> None:
    wrong = YAML + "  - file: /etc/wrong\n    mode: yellow\n    content: x\n    requires: [file:/etc/nowhere]\n"
    assert [one[:9] for one in refused(project, wrong)] == ["SC0202 16"]
    assert refused(project, YAML.replace("os.family", "os.famly", 1).replace("facts.mounts", "facts.mount")) == [
        "SC0520 2 `os` has no fact `famly`",
        "SC0520 12 a host has no fact `mount`",
    ]


def test_requirements_of_nodes_that_facts_decide_are_not_reported(project: Path) -> None:
    text = YAML + "  - service: nginx\n    requires: [package:nginx]\n"
    waiting = awaited(prepared(project, text, limit="web1"))
    waiting.add("web1", {**KNOWN, "os": {**OS, "family": "redhat"}})
    with pytest.raises(InvalidInput) as caught:
        waiting.finish()
    assert "package:nginx" in caught.value.problems[0].detail


def test_an_invalid_definition_of_one_host_is_an_error_that_names_the_host(project: Path) -> None:
    text = 'hosts: all\nresources:\n  - file: /etc/a\n    content: x\n    mode: "{{ host.facts.hostname }}"\n'
    waiting = awaited(prepared(project, text))
    assert waiting.add("web1", {"hostname": "0644"}) == {}
    assert waiting.add("web2", {"hostname": "yellow"}) == {}
    with pytest.raises(InvalidInput) as caught:
        waiting.finish()
    (problem,) = caught.value.problems
    assert (problem.code, problem.locations[0].line) == ("SC0202", 5)
    assert "web2" in problem.detail
    assert "web1" not in problem.detail


def test_a_failed_fact_matters_only_to_definitions_that_read_it(project: Path) -> None:
    text = """\
    hosts: all
    resources:
      - file: /etc/a
        content: "{{ host.facts.own.rack.name if host.name == 'web1' else host.facts.hostname }}"
    """
    waiting = awaited(prepared(project, text))
    for host in ("web1", "web2"):
        assert waiting.add(host, {"hostname": host}, {"own.rack": "no such file"}) == {}
    steps = waiting.finish()
    assert steps["web1"] == RefusedHost("the fact `own.rack` failed: no such file", hint=CORRECT)
    assert contents(steps["web2"]) == {"file:/etc/a": "web2"}


def test_known_facts_need_no_host(project: Path) -> None:
    work = prepared(project, YAML, facts={"web1": recorded(KNOWN)})
    assert [job.needs != () for job in work.jobs] == [False, True]
    assert contents(work.jobs[0])["file:/etc/a"] == "debian 4"
    assert set(work.facts.readings["web1"].recorded["web1"].times) == {"os", "cpus", "mounts", "packages", "own.rack"}
    (job,) = prepared(project, YAML, facts={"web1": recorded({"os": OS, "own.gone": 1})}, limit="web1").jobs
    assert "os" in job.needs


def test_places_that_depend_on_facts_are_known(project: Path) -> None:
    places = awaited(prepared(project, YAML, limit="web1")).locations()
    lines = {location.line: facts for location, (facts, _) in places.items()}
    assert lines == {1: {"packages"}, 2: {"os"}, 9: {"os"}, 12: {"mounts"}}


def test_tags_select_resources_that_facts_decide(project: Path) -> None:
    text = YAML.replace("  - package: nginx", "  - package: nginx\n    tags: [web]")
    work = prepared(project, text, tags=["web"], limit="web1")
    waiting = awaited(work)
    assert waiting.add("web1", KNOWN) == {}
    assert set(contents(waiting.finish()["web1"])) == {"package:nginx"}


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("x = 1\n", "rack.py has no function `fact`"),
        ("def fact(:\n", "invalid syntax"),
        ("def fact(world, more):\n    pass\n", "`fact` takes at most one parameter, the world"),
        ("import yaml\ndef fact():\n    pass\n", "the fact imports `yaml`, which is not part of Python's standard"),
        ("from . import x\ndef fact():\n    pass\n", "the fact imports `.`, which is not part"),
        ("def fact():\n    match 1:\n        case 1: pass\n", "Pattern matching is only supported in Python 3.10"),
    ],
)
def test_wrong_facts_of_the_project_are_errors(project: Path, source: str, detail: str) -> None:
    (project / "facts/rack.py").write_text(source)
    (found,) = refused(project, "hosts: all\nresources: []\n")
    assert found.startswith("SC0521 ")
    assert detail in found


def used(values: Mapping[str, Any], text: str, project: Path) -> str:
    waiting = awaited(prepared(project, text, limit="web1"))
    assert waiting.add("web1", values) == {}
    return str(contents(waiting.finish()["web1"])["file:/etc/a"])


def test_templates_use_facts_as_values(project: Path) -> None:
    start = "hosts: all\nresources:\n  - file: /etc/a\n    content: "
    assert used(KNOWN, start + "\"{{ host.facts.os.version is version('22.04', '>=') }}!\"\n", project) == "True!"
    assert used(KNOWN, start + "\"{{ host.facts.mounts | map(attribute='path') | join }}\"\n", project) == "/"
    assert used(KNOWN, start + "\"{{ host.facts.users['www-data'].home }}\"\n", project) == "/var/www"
    assert used(KNOWN, start + "\"{{ host.facts.packages['apache2'] | default('none') }}\"\n", project) == "none"
