"""Plays in YAML: entries, loops, conditions, includes, and the positions of mistakes."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from statecfg.problems import InvalidInput, Problem
from statecfg.run import prepare
from tests.each import each


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "inventory.yml").write_text(
        "hosts: [web1, web2]\ngroups: {web: {hosts: [web1, web2], vars: {zone: eu}}}\n"
    )
    (tmp_path / "playbooks").mkdir()
    return tmp_path


def write(project: Path, name: str, text: str) -> Path:
    path = project / "playbooks" / name
    path.write_text(textwrap.dedent(text))
    return path


def nodes(project: Path, text: str, **choice) -> dict[str, dict]:
    """Return the wire nodes of web1 by name."""
    choice.setdefault("limit", "web1")
    work = prepare.playbook(write(project, "play.yml", text), prepare.Choice(**choice))
    return {node["provides"]: node for layer in work.jobs[0].definition.layers for node in layer}


def refused(project: Path, text: str, **choice) -> list[Problem]:
    with pytest.raises(InvalidInput) as caught:
        nodes(project, text, **choice)
    return caught.value.problems


def brief(project: Path, found: list[Problem]) -> list[str]:
    return [f"{item.code} {item.locations[0]}".replace(f"{project}/playbooks/", "") for item in found]


def content(node: dict) -> str:
    return node["attrs"]["content"]["text"]


def test_play_from_the_docs_compiles_to_wire_nodes(project):
    write(project, "site.conf.j2", "listen {{ port }};\n")
    found = nodes(
        project,
        """\
        hosts: web
        vars: {port: 8080}
        resources:
          - package: nginx
          - file: /etc/nginx/conf.d/site.conf
            template: site.conf.j2
            mode: "0644"
            requires: [package:nginx]
          - service: nginx
            running: true
            enabled: true
            restart_on: [file:/etc/nginx/conf.d/site.conf]
        """,
    )
    site = found["file:/etc/nginx/conf.d/site.conf"]
    assert (content(site), site["requires"], site["position"]) == (
        "listen 8080;\n",
        ["package:nginx"],
        "playbooks/play.yml:5:5",
    )
    assert found["service:nginx"]["triggers"] == ["file:/etc/nginx/conf.d/site.conf"]


def test_templates_use_variables_and_extra_variables_win(project):
    text = """\
        hosts: web
        vars:
          port: 8080
          next: "{{ port + 1 }}"
          url: "http://{{ host.name }}.{{ zone }}:{{ next }}"
          deep: {list: ["{{ port }}"]}
        resources:
          - file: /etc/url
            content: "{{ url }} {{ deep.list[0] }} {{ host.groups | join(',') }}"
        """
    assert content(nodes(project, text)["file:/etc/url"]) == "http://web1.eu:8081 8080 web"
    extra = nodes(project, text, extra={"port": 9, "zone": "{{ no template }}"})
    assert content(extra["file:/etc/url"]) == "http://web1.{{ no template }}:10 9 web"


def test_for_each_repeats_entries_and_when_skips_them(project):
    found = nodes(
        project,
        """\
        hosts: web
        vars: {users: {ann: 1001, bob: 1002}, names: [x, z]}
        resources:
          - user: "{{ key }}"
            uid: "{{ value }}"
            for_each: users
          - file: "/etc/{{ item }}"
            content: ""
            for_each: "{{ names }}"
            when: item != "z"
          - file: "/srv/{{ item.id }}"
            content: ""
            for_each: [{id: a}, {id: b}]
          - file: "/opt/{{ key }}"
            content: "{{ value }}"
            for_each: {k: v}
          - {file: /never, content: "", when: false}
          - {file: /always, content: "", when: "{{ host.name == 'web1' }}"}
        """,
    )
    assert sorted(found) == [
        "file:/always",
        "file:/etc/x",
        "file:/opt/k",
        "file:/srv/a",
        "file:/srv/b",
        "user:ann",
        "user:bob",
    ]
    assert found["user:bob"]["attrs"]["uid"] == 1002


def test_include_adds_entries_with_variables_and_positions(project):
    (project / "playbooks" / "parts").mkdir()
    write(project, "parts/one.yml", '- {file: "/{{ name }}", content: "p{{ port }}"}\n- include: two.yml\n')
    write(
        project,
        "parts/two.yml",
        'vars: {x: "{{ port }}!"}\nresources:\n  - {file: "/two-{{ name }}", content: "{{ x }}"}\n',
    )
    write(project, "first.yml", '- {file: /first, content: ""}\n')
    found = nodes(
        project,
        """\
        hosts: web
        vars: {port: 80}
        include: first.yml
        resources:
          - include: parts/one.yml
            vars: {name: "n{{ item }}"}
            for_each: [1, 2]
        """,
    )
    assert sorted(found) == ["file:/first", "file:/n1", "file:/n2", "file:/two-n1", "file:/two-n2"]
    assert content(found["file:/two-n2"]) == "80!"
    assert found["file:/two-n2"]["position"] == "playbooks/parts/two.yml:3:6"


def test_play_refuses_a_cycle_of_includes(project):
    write(project, "a.yml", "- include: b.yml\n")
    write(project, "b.yml", "- include: a.yml\n")
    found = refused(project, "hosts: web\nresources:\n  - include: a.yml\n")
    assert brief(project, found) == ["SC0317 a.yml:1:3"] or brief(project, found) == ["SC0317 b.yml:1:3"]
    assert found[0].detail == "a.yml → b.yml → a.yml"
    assert len(found[0].locations) == 2


def test_playbook_with_two_plays_combines_them_per_host(project):
    path = write(
        project,
        "two.yml",
        """\
        - hosts: web1
          resources: [{file: /one, content: ""}]
        - name: second
          hosts: [web1, web2]
          resources: [{file: /two, content: ""}]
        """,
    )
    work = prepare.playbook(path, prepare.Choice())
    assert [(job.host.name, [len(layer) for layer in job.definition.layers]) for job in work.jobs] == [
        ("web1", [2]),
        ("web2", [1]),
    ]


def test_templates_see_the_variables_of_their_play(project):
    write(project, "t.j2", "{{ port }} {{ host.name }}")
    path = write(
        project,
        "two.yml",
        """\
        - {hosts: web, name: a, vars: {port: 1}, resources: [{file: /a, template: t.j2}]}
        - {hosts: web, name: b, vars: {port: 2}, resources: [{file: /b, template: t.j2}]}
        """,
    )
    layers = prepare.playbook(path, prepare.Choice(limit="web1")).jobs[0].definition.layers
    assert [content(node) for node in layers[0]] == ["1 web1", "2 web1"]


def test_play_reports_all_its_mistakes_together(project):
    found = refused(
        project,
        """\
        hots: web
        hosts: web
        resources:
          - nginx
          - pakage: nginx
          - mode: "0644"
          - requires: [x]
          - symlink: /etc/a
            package: b
          - include: x.yml
            with: 1
        """,
    )
    assert brief(project, found) == [
        "SC0311 play.yml:1:1",
        "SC0316 play.yml:4:5",
        "SC0106 play.yml:5:5",
        "SC0106 play.yml:6:5",
        "SC0316 play.yml:7:5",
        "SC0316 play.yml:8:5",
        "SC0301 play.yml:10:14",
        "SC0311 play.yml:11:5",
    ]
    assert "did you mean `hosts`" in found[0].help
    assert "did you mean `package`" in found[2].help


def test_play_reports_mistakes_of_all_nodes_together(project):
    found = refused(
        project,
        """\
        hosts: web
        vars: {port: 80}
        resources:
          - file: /etc/a
            contnet: x
            mode: 644
          - file: "/etc/{{ prot }}"
            content: "{{ nix }}"
          - file: /etc/b
            content: x
            owner: "{{ [port] }}"
          - {file: /etc/c, content: "", when: port}
          - {file: /etc/d, content: "", for_each: port}
          - include: "{{ port }}"
          - include: missing.yml
        """,
    )
    assert brief(project, found) == [
        "SC0101 play.yml:5:5",
        "SC0202 play.yml:6:5",
        "SC0321 play.yml:7:11",
        "SC0321 play.yml:8:14",
        "SC0201 play.yml:11:5",
        "SC0318 play.yml:12:39",
        "SC0319 play.yml:13:43",
        "SC0310 play.yml:14:14",
        "SC0301 play.yml:15:14",
    ]
    assert "did you mean `content`" in found[0].help
    assert "did you mean `port`" in found[2].help


@each(
    ("text", "code"),
    [
        ("[]", "SC0510"),
        ("resources: []", "SC0310"),
        ("hosts: 7", "SC0310"),
        ("hosts: web\nresources: {file: /x}", "SC0310"),
        ("hosts: web\nvars: [x]", "SC0310"),
        ("hosts: web\nvars: {a-b: 1}", "SC0308"),
        ("hosts: wbe\nresources: []", "SC0406"),
        ("hosts: web\nname: 7", "SC0310"),
        ("just text", "SC0310"),
        ("", "SC0303"),
    ],
)
def test_loader_refuses_a_playbook_of_the_wrong_shape(project, text, code):
    assert refused(project, text)[0].code == code


def test_attribute_may_have_the_name_of_a_node_type(project):
    found = nodes(
        project, 'hosts: web\nresources:\n  - group: staff\n    gid: 50\n  - {file: /x, content: "", group: staff}\n'
    )
    assert sorted(found) == ["file:/x", "group:staff"]


def test_secrets_reach_the_host_with_their_values(project, monkeypatch):
    monkeypatch.setenv("TOKEN", "correct-horse")
    path = write(
        project,
        "secret.yml",
        """\
        hosts: web1
        vars: {token: !secret {env: TOKEN}}
        resources:
          - {file: /a, content: "token={{ token }}"}
          - {file: /b, content: "{{ token }}"}
          - {file: /c, content: !secret {env: TOKEN, name: other}}
        """,
    )
    work = prepare.playbook(path, prepare.Choice())
    assert work.secrets == {"TOKEN": "correct-horse", "other": "correct-horse"}
    assert work.jobs[0].definition.secrets == work.secrets
    wire = json.dumps(work.jobs[0].definition.layers)
    assert wire.count("correct-horse") == 3


def test_host_receives_only_its_own_secrets(project, monkeypatch):
    monkeypatch.setenv("TOKEN", "correct-horse")
    text = """\
        hosts: web
        vars: {token: !secret {env: TOKEN}}
        resources:
          - {file: /a, content: "token={{ token }}", when: host.name == "web2"}
        """
    work = prepare.playbook(write(project, "own.yml", text), prepare.Choice())
    assert [job.definition.secrets for job in work.jobs] == [{}, {"TOKEN": "correct-horse"}]


def test_variables_of_a_host_are_not_evaluated_as_templates(project):
    (project / "inventory.yml").write_text("hosts: {web1: {vars: {x: '{{ 7 * 7 }}'}}}\n")
    found = nodes(project, 'hosts: web1\nresources:\n  - {file: /x, content: "{{ x }}"}\n')
    assert content(found["file:/x"]) == "{{ 7 * 7 }}"


def test_play_can_use_a_node_type_of_the_project(project):
    (project / "resources").mkdir()
    (project / "resources" / "yaml_own_link.py").write_text(
        textwrap.dedent('''\
        """Links of our own."""
        from statecfg.remote.graph.nodetype import node_type

        @node_type
        def yaml_own_link(path: str, target: str, *, note: str = "") -> None:
            """A link."""
        ''')
    )
    found = nodes(project, "hosts: web\nresources:\n  - yaml_own_link: [/a, /b]\n    note: hello\n")
    assert next(iter(found.values()))["attrs"] == {"path": "/a", "target": "/b", "note": "hello"}


def test_package_name_refuses_a_number_from_a_template(project):
    (found,) = refused(project, 'hosts: web\nvars: {port: 80}\nresources: [{package: "{{ port }}"}]\n')
    assert "| string" in found.help


def test_unknown_tag_lists_the_tags_of_the_playbook(project):
    text = "hosts: web\nresources:\n  - {file: /x, content: '', tags: [%s]}\n"
    assert refused(project, text % "net, base", tags=("nets",))[0].help == "did you mean `net`? (also valid: base)"
    assert refused(project, text % "net, base", tags=("x",))[0].help == "tags in the playbook: base, net"
    assert "add `tags: [NAME]`" in refused(project, text % "", tags=("x",))[0].help
