"""Hosts whose definitions read equal inputs share one evaluation; all others get their own."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from statecfg.facts.recorded import StoredFacts
from statecfg.graph.later import LaterSecret
from statecfg.graph.opaque import Secret
from statecfg.problems import InvalidInput
from statecfg.run import prepare, shared
from statecfg.run.choice import Choice, KnownFacts
from statecfg.run.shared import fingerprint, same
from tests.each import each
from tests.unit.facts.test_definitions import awaited

INVENTORY = """\
hosts:
  web1: {vars: {port: 80, size: 1, options: {a: 1, b: 2}}}
  web2: {vars: {port: 80, size: true, options: {b: 2, a: 1}}}
  web3: {vars: {port: 81, size: 1, options: {a: 1, b: 2}, extra: x}}
groups:
  web: {hosts: [web1, web2, web3], vars: {shared: "for all"}}
  some: {hosts: [web3]}
"""
PYTHON = """\
from statecfg import groups, hosts, play
from statecfg.resources import file

@play(hosts="web")
def web(host):
    return file("/etc/a", content=str(%s))
"""
USER = {"uid": 1001, "gid": 100, "comment": "", "home": "/home/ann", "shell": "/bin/sh"}
FACTS = {
    "web1": {"cpus": 2, "architecture": "x86_64", "packages": {"nginx": "1"}, "users": {"ann": USER}},
    "web2": {"cpus": 2, "architecture": "aarch64", "packages": {}, "users": {}},
    "web3": {
        "cpus": 4,
        "architecture": "x86_64",
        "packages": {"nginx": "1", "curl": "8"},
        "users": {"ann": {**USER, "uid": 1002}, "bob": USER},
    },
}


def groups_of(path: Path, **choice: Any) -> str:
    """Return which hosts share a definition, such as ``web1 web2 | web3``, and check that each would get the same."""
    work = prepare.playbook(path, Choice(**choice))
    found: dict[int, list[str]] = {}
    for job in work.jobs:
        found.setdefault(id(job.definition), []).append(job.host.name)
        (alone,) = prepare.playbook(path, Choice(**{**choice, "limit": job.host.name})).jobs
        assert alone.definition.layers == job.definition.layers
        assert alone.definition.digest == job.definition.digest
    return " | ".join(" ".join(names) for names in found.values())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "inventory.yml").write_text(INVENTORY)
    return tmp_path


def written(project: Path, text: str, ending: str) -> Path:
    path = project / f"play.{ending}"
    path.write_text(textwrap.dedent(text))
    return path


ALL, ALONE, PORT = "web1 web2 web3", "web1 | web2 | web3", "web1 web2 | web3"
EXPRESSIONS = {
    "1": ALL,
    "host.vars.shared": ALL,
    "host.vars.port": PORT,
    "host.vars['port']": PORT,
    "host.vars.size": "web1 web3 | web2",
    "host.vars.options": "web1 web3 | web2",
    "host.vars.get('extra', 1)": PORT,
    "'extra' in host.vars": PORT,
    "getattr(host.vars, 'extra', None)": PORT,
    "sorted(host.vars)": ALONE,
    "len(host.vars)": ALONE,
    "host.vars": ALONE,
    "__import__('copy').deepcopy(host.vars)['port']": PORT,
    "host.name": ALONE,
    "host.groups": PORT,
    "host.local": ALL,
    "hosts.web1.vars.port": ALL,
    "[one for one in groups.web if one != host.name]": ALONE,
}


@each("expression", EXPRESSIONS)
def test_python_shares_what_reads_equal_inputs(project: Path, expression: str) -> None:
    assert groups_of(written(project, PYTHON % expression, "py")) == EXPRESSIONS[expression]


def test_function_of_a_role_reads_variables(project: Path) -> None:
    (project / "roles/one").mkdir(parents=True)
    (project / "roles/one/role.yml").write_text("description: a role\n")
    code = "from statecfg.resources import file\ndef role(host): return file('/etc/a', content=str(host.vars.port))\n"
    (project / "roles/one/role.py").write_text(code)
    assert groups_of(written(project, "hosts: web\nresources: [{include: one}]\n", "yml")) == PORT


@pytest.mark.parametrize(("read", "expected"), [("host", ALONE), ("groups", PORT), ("vars.port", PORT), ("base", ALL)])
def test_node_type_reads_the_host(project: Path, read: str, expected: str) -> None:
    (project / "resources").mkdir()
    code = '''\
    """A type."""
    from statecfg import NodeOptions, node_type
    from typing import Unpack

    @node_type
    def os(name: str, text: str = "", **options: Unpack[NodeOptions]) -> None:
        """A type.

        :param name: its name
        :param text: its text
        """

    @os.to_wire
    def to_wire(node, context):
        return node.with_attrs(text=f"{context.%s}")

    @os.check
    def check(attrs, machine):
        return None
    '''
    (project / "resources/os.py").write_text(textwrap.dedent(code % read))
    assert groups_of(written(project, "hosts: web\nresources: [{os: /a}]\n", "yml")) == expected


FACT_READS = {
    "host.facts.cpus": PORT,
    "host.facts.architecture": "web1 web3 | web2",
    "host.facts.packages.get('nginx')": "web1 web3 | web2",
    "'curl' in host.facts.packages": PORT,
    "sorted(host.facts.packages)": ALONE,
    "'ann' in host.facts.users": "web1 web3 | web2",
    "bool(host.facts.users.get('bob'))": "web1 web2 | web3",
    "host.facts.users.ann.home if 'ann' in host.facts.users else ''": "web1 web3 | web2",
    "host.facts.users.ann.uid if 'ann' in host.facts.users else ''": ALONE,
    "__import__('copy').deepcopy(host.facts).cpus": PORT,
    "hosts.web1.facts.cpus": "web1 | web2 web3",
    "[one.facts.cpus for one in groups.web]": ALONE,
}


@each("expression", FACT_READS)
def test_hosts_with_equal_facts_share(project: Path, expression: str) -> None:
    path = written(project, PYTHON % expression, "py")
    facts = {host: StoredFacts(values, {}) for host, values in FACTS.items()}
    assert groups_of(path, known=KnownFacts(facts=facts)) == FACT_READS[expression]
    work = prepare.playbook(path, Choice(known=KnownFacts(facts=facts)))
    for host in FACTS:
        alone = prepare.playbook(path, Choice(known=KnownFacts(facts=facts), limit=host))
        assert alone.facts.used(host) == work.facts.used(host)
        assert [*alone.facts.readings[host].variables] == [*work.facts.readings[host].variables]


def test_existence_of_an_item_is_a_fact_that_was_used(project: Path) -> None:
    path = written(project, PYTHON % "'ann' in host.facts.users", "py")
    facts = {host: StoredFacts(values, {}) for host, values in FACTS.items()}
    work = prepare.playbook(path, Choice(known=KnownFacts(facts=facts)))
    assert [work.facts.used(host) for host in FACTS] == [{"users[ann]": known} for known in (True, None, True)]


def test_secrets_are_not_read_to_compare_hosts() -> None:
    one, other = (LaterSecret("pw", lambda: pytest.fail("nothing needs the value")) for _ in range(2))
    assert not same(one, other)
    assert same(one, one)


@pytest.mark.parametrize("order", ["web1,web2", "web2,web1"])
def test_only_local_hosts_are_refused_a_reboot(tmp_path: Path, order: str) -> None:
    (tmp_path / "inventory.yml").write_text("hosts: {web1: {}, web2: {transport: local}}\n")
    path = written(tmp_path, f"hosts: {order}\nresources: [{{reboot: x, always: true}}]\n", "yml")
    with pytest.raises(InvalidInput, match=r"reboot:x would reboot the machine .* \(on web2\)"):
        prepare.playbook(path, Choice())
    assert len(prepare.playbook(path, Choice(limit="web1")).jobs) == 1


def test_facts_of_a_host_without_tagged_resources_are_not_awaited(project: Path) -> None:
    text = """\
    - {hosts: "web1,web2", resources: [{file: /etc/a, content: "{{ hosts.web3.facts.cpus }}", tags: [a]}]}
    - {hosts: web3, resources: [{file: /etc/b, content: x}]}
    """
    path = written(project, text, "yml")
    with pytest.raises(InvalidInput, match="`cpus` of web3 is not known, and this run does not visit web3"):
        prepare.playbook(path, Choice(tags=["a"], known=KnownFacts(stored=dict)))


def test_facts_that_arrive_during_the_run_are_compared(project: Path) -> None:
    work = prepare.playbook(written(project, PYTHON % "host.facts.cpus", "py"), Choice())
    assert {job.host.name: job.needs for job in work.jobs} == dict.fromkeys(FACTS, ("cpus",))
    waiting = awaited(work)
    for host, facts in FACTS.items():
        assert waiting.add(host, {"cpus": facts["cpus"]}) == {}
    jobs = waiting.finish()
    assert jobs["web1"].definition is jobs["web2"].definition  # type: ignore[union-attr]  # no host was refused
    assert jobs["web1"].definition.digest != jobs["web3"].definition.digest  # type: ignore[union-attr]  # as above


def test_problem_of_shared_definitions_is_reported_once(project: Path) -> None:
    path = written(project, "hosts: web\nresources: [{file: /etc/a, content: '{{ nothing }}'}]\n", "yml")
    with pytest.raises(InvalidInput) as caught:
        prepare.playbook(path, Choice())
    (one,) = caught.value.problems
    assert "web" not in one.detail


@pytest.mark.parametrize(("read", "classes"), [("host.vars.port", 100), ("host.vars[f'port{host.vars.group}']", 20)])
def test_function_of_a_play_runs_once_for_equal_inputs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], read: str, classes: int
) -> None:
    """The classes are interleaved. The values of the second case decide which names are read."""
    kinds = [number % classes for number in range(3 * classes)]
    hosts = ", ".join(
        f"h{n}: {{vars: {{port: {kind}, group: {kind}, port{kind}: {kind}}}}}" for n, kind in enumerate(kinds)
    )
    (tmp_path / "inventory.yml").write_text(f"hosts: {{{hosts}}}\n")
    text = (PYTHON % read).replace("    return", "    print('called')\n    return")
    text = text.replace('"web"', '"all"')
    work = prepare.playbook(written(tmp_path, text, "py"), Choice())
    assert len({id(job.definition) for job in work.jobs}) == classes
    assert capfd.readouterr().err.count("called") == classes


def test_hosts_that_share_nothing_need_bounded_memory(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the last used evaluations are kept."""
    monkeypatch.setattr(shared, "KEPT", 3)
    ports = [1, 2, 3, 1, 4, 1, 2]
    hosts = ", ".join(f"h{number}: {{vars: {{port: {port}}}}}" for number, port in enumerate(ports))
    (tmp_path / "inventory.yml").write_text(f"hosts: {{{hosts}}}\n")
    text = (PYTHON % "host.vars.port").replace("    return", "    print(host.vars.port)\n    return")
    prepare.playbook(written(tmp_path, text.replace('"web"', '"all"'), "py"), Choice())
    assert capfd.readouterr().err.split() == ["1", "2", "3", "4", "2"]


@each(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        ("1", 1),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1], [True]),
        ([1], (1,)),
        ([1], [1, 2]),
        (0.0, -0.0),
        (Secret("a", "value-of-both"), Secret("b", "value-of-both")),
    ],
)
def test_values_of_other_types_or_orders_are_not_the_same(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert same(one, one)
    assert same([one], [one])
    assert fingerprint(one) == fingerprint(one)
