"""statecfg reports all mistakes of a playbook at once and each only once, whichever step finds them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.problems import InvalidInput, Problem
from statecfg.run import prepare
from tests.each import each

YAML = """\
hosts: all
resources:
  - pakage: nginx
  - file: /etc/a
    contnt: x
    mode: 644
    requires: ["package:nginx"]
  - file: "/etc/{{ nope }}"
    content: x
  - file: /etc/number
    content: x
    mode: 0644
    owner: {a: 1}
  - {file: /etc/z, content: a}
  - {file: /etc//z, content: b}
  - {file: /etc/q, content: q, requires: ["service:qq"]}
  - {file: /etc/dup, content: a}
  - {file: /etc/dup, content: b}
  - {file: /etc/source, source: nosuch.txt}
  - {file: /etc/template, template: nosuch.j2}
  - {file: /etc/self, content: x, requires: ["file:/etc/self"]}
  - {file: /etc/c1, content: x, requires: ["file:/etc/c2"]}
  - {file: /etc/c2, content: x, requires: ["file:/etc/c1"]}
  - {symlink: relative, target: /x, requires: ["file:/etc/a"]}
  - {file: /etc/secret, content: !secret {env: STATECFG_TEST_NOT_SET}}
  - {user: bob, shell: "{{ 1 / 0 }}", home: x}
"""
YAML_MISTAKES = [
    "SC0106 3",
    "SC0101 5",
    "SC0202 6",
    "SC0321 8",
    "SC0309 12",
    "SC0201 13",
    "SC0114 14",
    "SC0111 16",
    "SC0110 17",
    "SC0118 19",
    "SC0118 20",
    "SC0112 21",
    "SC0113 22",
    "SC0202 24",
    "SC0420 25",
    "SC0322 26",
    "SC0202 26",
]

PYTHON = """\
from statecfg import play, secret
from statecfg.resources import file, service, symlink

@play(hosts="all")
def web(host):
    a = file("/etc/a", contnt="x", mode=644)
    return [
        file("/etc/z", content="a"),
        file("/etc//z", content="b"),
        file("/etc/q", content="q", requires=["file:/etc/a", "service:qq"]),
        file("/etc/dup", content="a"),
        file("/etc/dup", content="b"),
        file("/etc/source", source="nosuch.txt", requires=[a]),
        file("/etc/self", content="x", requires=["file:/etc/self"]),
        file("/etc/c1", content="x", requires=["file:/etc/c2"]),
        file("/etc/c2", content="x", requires=["file:/etc/c1"]),
        symlink("relative", target="/x"),
        service("nginx", running="yes"),
        file("/etc/secret", content=secret("s", env="STATECFG_TEST_NOT_SET")),
    ]

@play(hosts="h1")
def other(host):
    service("x", runing=True)
    return file("/etc/other", content=host.vars.nope, requires=["file:/nowhere"])

@play(hosts="nosuch")
def nowhere(host):
    return None
"""
PYTHON_MISTAKES = [
    "SC0101 6",
    "SC0202 6",
    "SC0114 8",
    "SC0111 10",
    "SC0110 11",
    "SC0118 13",
    "SC0112 14",
    "SC0113 15",
    "SC0202 17",
    "SC0201 18",
    "SC0420 19",
    "SC0101 24",
    "SC0514 25",
    "SC0406 27",
]

HY = """\
(require statecfg.dialects.hy [defplay node-type make-validators])
(import statecfg.dialects.hy [map?])
(import statecfg.resources [file service symlink])
(node-type thing :arguments [name] :required-attrs [env])
(make-validators (env map?))
(defplay web [host] {:hosts "all"}
  (setv a (file "/etc/a" {:contnt "x" :mode 644}))
  [(file "/etc/z" {:content "a" :requires [a]})
   (file "/etc//z" {:content "b"})
   (file "/etc/q" {:content "q" :requires [:service:qq]})
   (file "/etc/dup" {:content "a"})
   (file "/etc/dup" {:content "b"})
   (file "/etc/source" {:source "nosuch.txt"})
   (file "/etc/self" {:content "x" :requires ["file:/etc/self"]})
   (file "/etc/c1" {:content "x" :requires ["file:/etc/c2"]})
   (file "/etc/c2" {:content "x" :requires ["file:/etc/c1"]})
   (thing "t" {:env [1]})
   (thing "u" {:requires [3]})
   (service "nginx" {:running "yes"})])
"""
HY_MISTAKES = [
    "SC0101 7",
    "SC0202 7",
    "SC0114 8",
    "SC0111 10",
    "SC0110 11",
    "SC0118 13",
    "SC0112 14",
    "SC0113 15",
    "SC0202 17",
    "SC0105 18",
    "SC0102 18",
    "SC0201 19",
]
CASES = [("yml", YAML, YAML_MISTAKES), ("py", PYTHON, PYTHON_MISTAKES), ("hy", HY, HY_MISTAKES)]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "inventory.yml").write_text("hosts: [h1, h2, h3]\n")
    (tmp_path / "playbooks").mkdir()
    yield tmp_path


def playbook(project: Path, name: str, text: str) -> Path:
    path = project / "playbooks" / name
    path.write_text(textwrap.dedent(text))
    return path


def mistakes(project: Path, name: str, text: str) -> list[Problem]:
    with pytest.raises(InvalidInput) as caught:
        prepare.playbook(playbook(project, name, text), prepare.Choice())
    return caught.value.problems


def brief(found: list[Problem]) -> list[str]:
    return [f"{item.code} {item.locations[0].line}" for item in found]


@pytest.mark.parametrize(("suffix", "text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_playbook_reports_every_mistake_once_in_order(project, suffix: str, text: str, expected: list[str]) -> None:
    found = mistakes(project, f"bad.{suffix}", text)
    assert brief(found) == expected, "\n".join(map(str, found))


def test_problem_on_some_hosts_names_those_hosts(project) -> None:
    (project / "inventory.yml").write_text("hosts: {h1: {vars: {port: 1}}, h2: , h3: }\n")
    text = 'hosts: all\nresources: [{file: "/{{ port }}", content: x}, {file: /b, contnt: x}]\n'
    port, content = mistakes(project, "some.yml", text)
    assert port.detail == "the variable `port` is not defined (on h2, h3)"
    assert "(on" not in content.detail


def test_exception_on_several_hosts_is_reported_once(project) -> None:
    text = """\
    from statecfg import play
    from statecfg.resources import file

    @play(hosts="all")
    def web(host):
        file("/a", contnt="x")
        return file(f"/{host.name}/{1 // 0}", content="x")
    """
    found = mistakes(project, "raises.py", text)
    assert brief(found) == ["SC0101 6", "SC0504 7"]


@each(
    "entry",
    [
        "{pakage: nginx}",
        "nginx",
        "{package: nginx, user: bob}",
        '{package: "{{ nope }}"}',
        "{package: nginx, for_each: 3}",
        "{package: nginx, when: 3}",
        "{package: other, provides: '{{ nope }}'}",
        "{package: nginx, versoin: 3}",
        "{package: nginx, version: 3.10}",
        "{include: missing.yml}",
    ],
)
def test_requiring_a_broken_entry_causes_no_second_problem(project, entry: str) -> None:
    text = f'hosts: all\nresources:\n  - {entry}\n  - {{file: /etc/a, content: x, requires: ["package:nginx"]}}\n'
    assert brief(mistakes(project, "echo.yml", text)) in (["SC0106 3"], ["SC0316 3"], ["SC0321 3"], ["SC0319 3"],
        ["SC0318 3"], ["SC0101 3"], ["SC0309 3"], ["SC0301 3"])  # fmt: skip


def test_broken_variable_is_reported_only_once(project) -> None:
    text = """\
    hosts: all
    vars: {root: "{{ nope }}", also: "{{ root }}/x", fine: z}
    resources:
      - {file: "{{ root }}/a", content: "{{ fine }}"}
      - {file: /etc/b, content: "{{ also }}", mode: 644, template: t.j2}
      - {file: /etc/c, template: t.j2}
    """
    (project / "playbooks" / "t.j2").write_text("{{ root }}")
    assert brief(mistakes(project, "vars.yml", text)) == ["SC0321 2", "SC0202 5"]


def test_mistakes_of_inventory_and_playbook_are_reported_together(project) -> None:
    (project / "inventory.yml").write_text("hosts: {h1: {prot: 1}}\n")
    found = mistakes(project, "both.yml", "hosts: all\nresources: [{fiel: /a}]\n")
    assert brief(found) == ["SC0311 1", "SC0106 2"]


BROKEN_TYPES = {
    "undefined.py": "from statecfg import node_type\n\n@node_type\ndef undefined(name: Strr) -> None: ...\n",
    "unparsable.py": "def (\n",
    "nameless.py": "x = 1\n",
    "raises.py": "from typing import Annotated\nfrom statecfg import node_type\n\n"
    "def boom(value):\n    raise KeyError('oops')\n\n"
    "@node_type\ndef raises(name: Annotated[str, boom]) -> None: ...\n",
    "unsent.py": "from statecfg import node_type\n\n@node_type\ndef unsent(name: str) -> None: ...\n\n"
    "@unsent.to_wire\ndef to_wire(node):\n    return node.attrs['nope']\n",
    "refuses.py": "from statecfg import node_type\n\n@node_type\ndef refuses(name: str) -> None: ...\n\n"
    "@refuses.to_wire\ndef to_wire(node):\n    raise ValueError('not today')\n",
    "inhy.hy": "(require statecfg.dialects.hy [node-type make-validators])\n"
    "(node-type inhy :arguments [name] :required-attrs [env])\n(make-validators (env (fn [x] (/ 1 0))))\n",
}


def test_mistakes_in_node_types_are_reported_at_their_place(project) -> None:
    (project / "resources").mkdir()
    for name, text in BROKEN_TYPES.items():
        (project / "resources" / name).write_text(text)
    names = [name.partition(".")[0] for name in BROKEN_TYPES]
    entries = "".join(f"  - {{{name}: x{', env: 1' if name == 'inhy' else ''}}}\n" for name in names)
    found = mistakes(project, "types.yml", f"hosts: all\nresources:\n{entries}  - {{file: /a, contnt: x}}\n")
    told = {(item.code, item.locations[0].file.rpartition("/")[2], item.locations[0].line) for item in found}
    assert told == {
        ("SC0503", "undefined.py", 4),
        ("SC0501", "unparsable.py", 1),
        ("SC0119", "nameless.py", 1),
        ("SC0504", "raises.py", 5),
        ("SC0504", "unsent.py", 8),
        ("SC0116", "types.yml", 8),
        ("SC0504", "inhy.hy", 3),
        ("SC0101", "types.yml", 10),
    }
    assert len(found) == len(told)
