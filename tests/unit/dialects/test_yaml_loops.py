"""Loops in YAML: the variable `loop`, blocks of entries, named items, labels, and references to loops and includes."""

from __future__ import annotations

from pathlib import Path

from tests.each import each
from tests.unit.dialects.test_yaml_plays import brief, content, nodes, project, refused, write

__all__ = ["project"]


def contents(found: dict[str, dict]) -> dict[str, str]:
    return {name.removeprefix("file:"): content(node) for name, node in found.items() if node["type"] == "file"}


def test_loop_has_the_index_of_the_round(project: Path) -> None:
    found = nodes(
        project,
        """\
        hosts: web
        resources:
          - file: "/{{ item }}"
            content: "{{ loop.index0 }} {{ loop.index }} {{ loop.first }} {{ loop.last }} {{ loop.length }}"
            for_each: [a, b, c]
          - file: "/{{ key }}"
            content: "{{ loop.index }}{{ value }}"
            for_each: {x: z}
          - file: /last
            content: last
            for_each: [1, 2]
            when: loop.last
        """,
    )
    assert contents(found) == {
        "/a": "0 1 True False 3",
        "/b": "1 2 False False 3",
        "/c": "2 3 False True 3",
        "/x": "1z",
        "/last": "last",
    }


def test_block_repeats_its_entries_and_names_the_outer_item(project: Path) -> None:
    found = nodes(
        project,
        """\
        hosts: web
        vars: {sites: [{name: one, ports: [80, 81]}, {name: two, ports: [90]}], users: {ann: 1}}
        resources:
          - for_each: sites
            as: site
            resources:
              - file: "/{{ site.name }}/{{ item }}"
                content: "{{ loop.index }} of {{ loop.outer.index }}"
                for_each: site.ports
              - file: "/{{ site.name }}"
                content: "{{ loop.index }} {{ loop.outer is defined }}"
          - for_each: users
            as: user_entry
            resources:
              - {file: "/{{ user_entry.key }}", content: "{{ user_entry.value }}"}
        """,
    )
    assert contents(found) == {
        "/one/80": "1 of 1",
        "/one/81": "2 of 1",
        "/two/90": "1 of 2",
        "/one": "1 False",
        "/two": "2 False",
        "/ann": "1",
    }


def test_three_loops_can_be_nested(project: Path) -> None:
    found = nodes(
        project,
        """\
        hosts: web
        resources:
          - for_each: [a, b]
            as: x
            resources:
              - for_each: [c, d]
                as: w
                resources:
                  - file: "/{{ x }}{{ w }}{{ item }}"
                    content: "{{ loop.outer.outer.index }}{{ loop.outer.index }}{{ loop.index }}"
                    for_each: [e]
        """,
    )
    assert contents(found) == {"/ace": "111", "/ade": "121", "/bce": "211", "/bde": "221"}


def test_block_with_a_condition_and_without_a_loop(project: Path) -> None:
    text = """\
        hosts: web
        resources:
          - when: zone == "{zone}"
            resources:
              - {{file: /a, content: ""}}
              - {{file: /b, content: ""}}
          - resources: []
          - resources:
        """
    assert sorted(nodes(project, text.format(zone="eu"))) == ["file:/a", "file:/b"]
    assert nodes(project, text.format(zone="us")) == {}


def test_included_file_uses_the_named_item(project: Path) -> None:
    write(project, "part.yml", '- {file: "/{{ site }}{{ number }}", content: "{{ loop.index }}"}\n')
    found = nodes(
        project,
        """\
        hosts: web
        resources:
          - include: part.yml
            as: site
            for_each: [a, b]
            vars: {number: "{{ loop.index0 }}"}
        """,
    )
    assert contents(found) == {"/a0": "1", "/b1": "2"}


def test_references_to_loops_and_included_files(project: Path) -> None:
    write(project, "part.yml", "- package: curl\n- include: deeper.yml\n")
    write(project, "deeper.yml", "- package: wget\n")
    found = nodes(
        project,
        """\
        hosts: web
        resources:
          - include: part.yml
          - file: "/{{ item }}"
            content: ""
            for_each: [a, b]
            label: files
          - for_each: [x, z]
            as: name
            label: "all-{{ zone }}"
            resources:
              - {directory: "/{{ name }}"}
              - file: "/{{ name }}/{{ item }}"
                content: ""
                requires: ["directory:/{{ name }}"]
                for_each: [1, 2]
                label: "in-{{ name }}"
          - service: one
            running: true
            requires: [include:part.yml]
            restart_on: [loop:files]
          - {service: two, running: true, requires: [include:deeper.yml, loop:in-x]}
          - {service: three, running: true, requires: [loop:all-eu]}
        """,
    )
    assert found["service:one"]["requires"] == ["package:curl", "package:wget", "file:/a", "file:/b"]
    assert found["service:one"]["triggers"] == ["file:/a", "file:/b"]
    assert found["service:two"]["requires"] == ["package:wget", "file:/x/1", "file:/x/2"]
    assert found["service:three"]["requires"] == [
        "directory:/x", "file:/x/1", "file:/x/2", "directory:/z", "file:/z/1", "file:/z/2",
    ]  # fmt: skip


def test_references_to_an_empty_loop_and_a_skipped_include_match_nothing(project: Path) -> None:
    write(project, "part.yml", "- package: curl\n")
    found = nodes(
        project,
        """\
        hosts: web
        resources:
          - {include: part.yml, when: false}
          - {package: "{{ item }}", for_each: [], label: none}
          - {service: nginx, running: true, requires: [include:part.yml], restart_on: [loop:none]}
        """,
    )
    assert "requires" not in found["service:nginx"]


def test_equal_entries_of_several_files_become_one_node(project: Path) -> None:
    for name in ("one", "two"):
        write(project, f"{name}.yml", f"- {{package: nginx, tags: [{name}]}}\n")
    found = nodes(
        project,
        """\
        - hosts: web
          include: [one.yml, two.yml]
          resources: [{package: nginx, protect: true}]
        - hosts: web1
          resources: [{package: nginx}, {service: nginx, running: true, requires: [tag:two]}]
        """,
    )
    node = found["package:nginx"]
    assert node["options"] == {"tags": ["one", "two"], "protect": True}
    assert [node["position"], *node["also"]] == [
        "playbooks/one.yml:1:4", "playbooks/two.yml:1:4", "playbooks/play.yml:3:16", "playbooks/play.yml:5:16",
    ]  # fmt: skip
    assert found["service:nginx"]["requires"] == ["package:nginx"]


def test_template_with_different_variables_is_refused(project: Path) -> None:
    write(project, "t.j2", "{{ port }}")
    text = """\
        - hosts: web
          vars: {{port: 1}}
          resources: [{{file: /a, template: t.j2}}]
        - hosts: web
          vars: {{port: {port}}}
          resources: [{{file: /a, template: t.j2}}]
        """
    assert content(nodes(project, text.format(port=1))["file:/a"]) == "1"
    (found,) = refused(project, text.format(port=2))
    assert found.code == "SC0110" and "give different results: `content`" in found.detail
    assert [place.line for place in found.locations] == [3, 6]


def test_tags_keep_nodes_that_a_reference_requires(project: Path) -> None:
    text = """\
        hosts: web
        resources:
          - {file: /a, content: ""}
          - {file: /b, content: ""}
          - {service: nginx, running: true, tags: [only], requires: ["file:/a*"]}
        """
    assert sorted(nodes(project, text, tags=("only",))) == ["file:/a", "service:nginx"]


@each(
    ("entry", "expected"),
    [
        ("{file: /a, content: '', as: site}", "SC0319 play.yml:3:29"),
        ("{file: /a, content: '', label: x}", "SC0319 play.yml:3:29"),
        ("{resources: [{package: aa}], as: site}", "SC0319 play.yml:3:34"),
        ("{package: aa, for_each: [1], as: 3x}", "SC0308 play.yml:3:38"),
        ("{package: aa, for_each: [1], as: loop}", "SC0308 play.yml:3:38"),
        ("{package: aa, for_each: [1], as: [b]}", "SC0308 play.yml:3:38"),
        ("{package: aa, for_each: [1], label: 3}", "SC0319 play.yml:3:41"),
        ("{package: aa, for_each: [1], label: ''}", "SC0319 play.yml:3:41"),
        ("{resources: {package: aa}}", "SC0310 play.yml:3:17"),
        ("{resources: [{package: aa}], vars: {}}", "SC0311 play.yml:3:34"),
        ("{resources: [{pakage: a}]}", "SC0106 play.yml:3:19"),
        ("{package: '{{ site }}', for_each: [1], as: item2}", "SC0321 play.yml:3:15"),
        ("{package: '{{ loop.outer.index }}', for_each: [a]}", "SC0321 play.yml:3:15"),
        ("{package: aa, requires: [loop:nope]}", "SC0111 play.yml:3:30"),
    ],
)
def test_wrong_loops_are_reported_at_their_place(project: Path, entry: str, expected: str) -> None:
    assert brief(project, refused(project, f"hosts: web\nresources:\n  - {entry}\n")) == [expected]


def test_attribute_of_a_node_type_may_be_called_label(project: Path) -> None:
    (project / "resources").mkdir()
    (project / "resources" / "disk.py").write_text(
        "from statecfg import Name, Text, node_type\n\n@node_type\ndef disk(name: Name, *, label: Text) -> None:\n"
        '    """A disk."""\n\n@disk.check\ndef check(node, world):\n    return []\n'
    )
    found = nodes(project, 'hosts: web\nresources: [{disk: "d{{ item }}", label: "l{{ item }}", for_each: [1]}]\n')
    assert found["disk:d1"]["attrs"] == {"name": "d1", "label": "l1"}


def test_nested_loops_share_the_limits_of_the_play(project: Path) -> None:
    inner = "{for_each: '{{ range(9) | list }}', resources: [%s]}"
    entry = inner % (inner % "{package: 'p{{ item }}'}")
    assert len(nodes(project, f"hosts: web\nresources:\n  - {entry}\n")) == 9
