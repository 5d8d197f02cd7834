"""The JSON Schemas accept what statecfg accepts, and refuse common mistakes."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from statecfg import dialects
from statecfg.cli import schema as schema_command
from statecfg.dialects import role_files, yaml_inventory, yaml_text, yaml_tree
from statecfg.editors import files, inventories, names, node_types
from statecfg.playbook import project as projects
from statecfg.problems import InvalidInput
from tests.each import check_each, each
from tests.unit.resources.test_cases import FILES, by_place, cases_of

ROOT = Path(__file__).parent.parent.parent.parent
BLOCK = re.compile(r"^```(yaml|toml)\n(.*?)^```", re.S | re.M)
SCHEMA_NAMES = tuple(files.SCHEMAS)
CHECKED: dict[str, Any] = {}  # the definitions that are valid
# A mistake, and node types that the page defines.
OTHERWISE = ("notify: restart", "json_keys:", "git_setting:", "git_words:")


@functools.cache
def validator(kind: str, root: Path = ROOT / "tests/host/corpus/project") -> Draft7Validator:
    document = {"$schema": files.DRAFT, **files.SCHEMAS[kind](projects.Project(root))}
    # The check takes long, and several kinds have the same definitions.
    new = {name: item for name, item in document.get("definitions", {}).items() if CHECKED.get(name) != item}
    Draft7Validator.check_schema({**document, "definitions": new})
    CHECKED.update(new)
    return Draft7Validator(document)


def value(text: str) -> Any:
    """Return the value of YAML as editors read it. The value of `!secret` is a map."""
    return yaml_tree.plain(yaml_text.parse(text, "test.yml", ""), lambda tag, value, location, name: value)


def wrong(kind: str, text: str) -> list[str]:
    return [error.message for error in validator(kind).iter_errors(value(text))]


def examples() -> dict[str, tuple[str, str]]:
    """Return the kind and text of the playbooks and inventories of the project and of its documentation."""
    written = [*(ROOT / "playbooks").glob("*.yml"), *(ROOT / "tests/host/corpus/project").rglob("*.yml")]
    texts = [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in written]
    for page in sorted((ROOT / "docs").glob("*.md")):
        blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
        texts += [(f"{page.stem} {count}", text) for count, (kind, text) in enumerate(blocks) if kind == "yaml"]
    found = {}
    for name, text in texts:
        if any(word in text for word in OTHERWISE):
            continue
        if re.search(r"^params:", text, re.M):
            found[f"{name}: role"] = "role", text
        elif re.search(r"^(- )?(resources|relations|service):", text, re.M):
            kind = "playbook" if re.search(r"^(- | {2})?(hosts|relations):", text, re.M) else "include"
            found[f"{name}: {kind}"] = kind, text
        elif re.search(r"^(hosts|groups):", text, re.M):
            found[f"{name}: inventory"] = "inventory", text
    return found


def test_schemas_accept_each_example() -> None:
    check_each(examples(), lambda example: accepts(*example))


def accepts(kind: str, text: str) -> None:
    assert wrong(kind, text) == []


def test_there_are_examples_of_each_kind() -> None:
    kinds = [kind for kind, _ in examples().values()]
    assert all(kinds.count(kind) >= 3 for kind in ("playbook", "include", "role", "inventory")), kinds


@pytest.mark.parametrize("file", FILES)
def test_schema_accepts_the_nodes_of_the_cases(file: str) -> None:
    """A case with `bad` is about a value that statecfg refuses. The schema finds some of these values."""
    check_each(by_place(case for case in cases_of(file) if "bad" not in case.data), accepted)


def accepted(case: dict[str, Any]) -> None:
    for entry in [case["node"], *case.get("with", ())]:
        assert [error.message for error in validator("include").iter_errors([entry])] == []


ENTRIES = {
    "an unknown node type": "- pakage: nginx",
    "an unknown attribute": "- file: /etc/motd\n  moed: '0644'",
    "two node types": "- symlink: /etc/motd\n  package: nginx",
    "a required attribute is missing": "- replace: /etc/motd\n  pattern: x",
    "a mode without quotes": "- file: /etc/motd\n  mode: 644",
    "a relative path": "- file: etc/motd",
    "a word instead of true": "- service: nginx\n  running: maybe",
    "an unknown choice": "- service: nginx\n  on_change: reboot",
    "text instead of a list": "- user: ann\n  groups: www-data",
    "no node type": "- when: x is defined",
    "only text": "- nginx",
    "a number as a requirement": "- package: nginx\n  requires: [1]",
    "a node type in Hy": "- process: /bin/x\n  user: ann\n  group: ann\n  env: {}\n  args: []\n  nosuch: 1",
}
VALID = {
    "templates": "- service: '{{ name }}'\n  running: '{{ on }}'\n  on_change: '{{ how }}'\n  stable_for: '{{ 3 }}'",
    "a template in a path and a list": "- user: ann\n  home: '{{ home }}'\n  groups: ['{{ group }}', www-data]",
    "a template as a list": "- user: ann\n  groups: '{{ groups }}'",
    "a secret": "- user: ann\n  password_hash: !secret {env: HASH}",
    "an omitted value": "- file: /etc/motd\n  mode:",
    "attributes named like node types": "- file: /etc/motd\n  group: adm",
    "a type whose attribute is a node type": "- user: ann\n  group: adm",
    "one requirement": "- package: nginx\n  requires: package:apt\n  tags: web",
    "a loop": "- package: '{{ p }}'\n  for_each: [a, b]\n  as: p\n  label: all",
    "a block": "- for_each: sites\n  as: site\n  resources:\n    - file: /etc/{{ site }}",
    "an include": "- include: other.yml\n  vars: {port: 80}\n  when: true",
}


def test_schema_refuses_each_wrong_entry() -> None:
    check_each(ENTRIES, lambda text: refuses("include", text))
    check_each(ENTRIES, lambda text: refuses("playbook", "hosts: web\nresources:\n" + text))


def refuses(kind: str, text: str) -> None:
    assert wrong(kind, text)


def test_schema_accepts_each_valid_entry() -> None:
    check_each(VALID, lambda text: accepts("include", text))
    check_each(VALID, lambda text: accepts("playbook", "hosts: web\nresources:\n" + text))


OTHERS = {
    "a play without hosts": ("playbook", "resources: []"),
    "an unknown key of a play": ("playbook", "hosts: web\ntasks: []"),
    "a variable named host": ("playbook", "hosts: web\nvars: {host: 1}"),
    "a wrong relation": ("playbook", "- relations: [[web]]"),
    "a wrong type of an option": ("playbook", "service: web\nhosts: web\nschema: {title: {type: text}}"),
    "an unknown key of a host": ("inventory", "hosts: {web1: {adress: 192.0.2.1}}"),
    "a port": ("inventory", "hosts: {web1: {port: 70000}}"),
    "a name of a host": ("inventory", "hosts: {-web1: }"),
    "an unknown key of an inventory": ("inventory", "host: {web1: }"),
}


def test_schema_refuses_other_mistakes() -> None:
    check_each(OTHERS, lambda mistake: refuses(*mistake))


def test_schema_of_settings_has_each_setting_with_type_and_description() -> None:
    properties = validator("settings").schema["properties"]
    assert set(properties) == set(projects.SETTINGS)
    assert all(item["description"] for item in properties.values())
    assert not list(validator("settings").iter_errors({"forks": 4, "become": True, "lock_timeout": 1.5}))
    for settings in ({"forks": 0}, {"fork": 1}, {"name": 1}):
        assert list(validator("settings").iter_errors(settings)), settings


def test_schema_of_inventories_describes_each_key() -> None:
    assert set(inventories.HOST) == set(yaml_inventory.HOST_KEYS)
    assert set(inventories.GROUP) == set(yaml_inventory.GROUP_KEYS)


@pytest.fixture
def project(tmp_path: Path) -> projects.Project:
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "resources").mkdir()
    (tmp_path / "inventory.yml").write_text("hosts: {web1: , '@local': }\ngroups: {web: {hosts: [web1]}}\n")
    return projects.Project(tmp_path)


VHOST = '''
from statecfg import Port, node_type


@node_type
def vhost(name: str, *, port: Port, tls: bool = False) -> None:
    """Manage a virtual host.

    :param port: the port
    """
'''


def test_schema_contains_the_node_types_of_the_project(project: projects.Project) -> None:
    (project.root / "resources/vhost.py").write_text(VHOST)
    found = files.SCHEMAS["include"](project)
    check = Draft7Validator(found)
    assert check.is_valid([{"vhost": "shop", "port": 80}]) and not check.is_valid([{"vhost": "shop"}])
    assert found["definitions"]["type vhost"]["properties"]["port"]["description"] == "the port"
    assert found["definitions"]["type vhost"]["properties"]["vhost"]["description"] == "Manage a virtual host."


def test_wrong_node_types_of_the_project_are_all_reported(project: projects.Project) -> None:
    (project.root / "resources/one.py").write_text("x = 1\n")
    (project.root / "resources/two.py").write_text("raise KeyError('no')\n")
    with pytest.raises(InvalidInput) as caught:
        files.text("playbook", project)
    assert len(caught.value.problems) == 2


PLAYBOOK = """
- hosts: web
  resources:
    - package: nginx
      tags: [base]
    - file: "/etc/{{ name }}"
      requires: [package:nginx]
    - directory: /srv
      provides: data
    - for_each: [1]
      label: sites
      resources:
        - file: /srv/{{ item }}
    - include: parts/one.yml
"""


def test_names_of_nodes_are_found_as_they_are_written(project: projects.Project) -> None:
    (project.root / "playbooks/web.yml").write_text(PLAYBOOK)
    (project.root / "playbooks/parts").mkdir()
    (project.root / "playbooks/parts/one.yml").write_text("- user: ann\n")
    (project.root / "playbooks/broken.yml").write_text("- user: [\n")
    node_types.of_project(project.root)
    assert names.of_project(project.root) == [
        "data", "file:/etc/{{ name }}", "file:/srv/{{ item }}", "include:parts/one.yml", "loop:sites", "package:nginx",
        "tag:base", "user:ann",
    ]  # fmt: skip


def test_schema_suggests_names_of_nodes_and_hosts(project: projects.Project) -> None:
    (project.root / "playbooks/web.yml").write_text(PLAYBOOK)
    definitions = files.SCHEMAS["playbook"](project)["definitions"]
    requirements = {item["label"]: item["bodyText"] for item in definitions["names"]["anyOf"][0]["defaultSnippets"]}
    assert requirements["package:nginx"] == "package:nginx"
    assert requirements["file:/srv/{{ item }}"] == '"file:/srv/{{ item }}"'
    play = definitions["definition"]["else"]["else"]["properties"]
    hosts = [item["bodyText"] for item in play["hosts"]["anyOf"][0]["defaultSnippets"]]
    assert hosts == ['"@local"', "all", "web", "web1"]


def test_writing_replaces_only_files_that_changed(project: projects.Project) -> None:
    assert [path.name for path in files.write(project)] == [f"{kind}.json" for kind in SCHEMA_NAMES]
    assert list(files.write(project)) == []
    (project.root / "playbooks/web.yml").write_text(PLAYBOOK)
    assert [path.name for path in files.write(project)] == ["playbook.json", "include.json", "role.json"]


def test_first_line_names_the_schema_relative_to_the_file() -> None:
    start = "# yaml-language-server: $schema="
    assert files.line("playbook", "playbooks/a/b.yml") == f"{start}../../.statecfg/playbook.json\n"
    assert files.line("inventory", "inventory.yml") == f"{start}.statecfg/inventory.json\n"
    assert files.line("settings", "statecfg.toml") == "#:schema .statecfg/settings.json\n"


def test_command_offers_each_kind_of_schema() -> None:
    assert schema_command.SCHEMA_NAMES == SCHEMA_NAMES


def test_every_kind_of_playbook_has_the_same_keys_as_its_reader() -> None:
    schema = validator("playbook").schema["definitions"]["definition"]["else"]
    assert set(schema["then"]["properties"]) == set(dialects.yaml.SERVICE_KEYS)
    assert set(schema["else"]["properties"]) == {*dialects.yaml.KEYS, "service", "relations"}


def test_the_schema_of_roles_has_the_same_keys_as_its_reader() -> None:
    schema = validator("role").schema
    assert set(schema["properties"]) == set(role_files.KEYS)
    assert set(schema["properties"]["params"]["additionalProperties"]["properties"]) == set(role_files.PARAMETER_KEYS)


@each("text", ["parameters: {}", "params: {port: {type: integr}}", "params: {a b: {}}", "[]"])
def test_the_schema_of_roles_refuses_mistakes(text: str) -> None:
    assert wrong("role", text)


@each(
    "condition",
    [
        "{path: /etc/nginx, is: directory}", "[{user: ann}, {not: {group: staff}}]", "{any: [{unit: a}, {path: /b}]}",
        '{package: nginx, version: ">= 1.2"}', "{command: [a], read_only: true, reads: [/b]}", '{path: "{{ where }}"}',
        "{command: a -b, read_only: true, reads: []}", "",
    ],
)  # fmt: skip
def test_schema_accepts_conditions(condition: str) -> None:
    assert wrong("include", f"- package: nginx\n  when_host: {condition}\n") == []


@each(
    ("written", "right"),
    [
        ("{glob: /etc/*.conf, is: file}", True), ("{users: {}}", True), ("{users: {min_uid: 1, group: a}}", True),
        ("{mounts: {type: [ext4]}}", True), ("{command: [a], read_only: true, reads: []}", True), ("{mounts: }", True),
        ("/etc/*", False), ("{}", False), ("{globs: /etc/*}", False), ("{users: {uid: 1}}", False),
        ("{command: [a]}", False), ("{glob: etc/*}", False), ("{users: {}, is: file}", False),
    ],
)  # fmt: skip
def test_schema_of_lists_of_items(written: str, right: bool) -> None:
    found = wrong("include", f"- file: '{{{{ host_item }}}}'\n  for_each_host: {written}\n")
    assert (found == []) is right


@each(
    "condition",
    ["/etc", "{}", "{paht: /etc}", "{path: etc}", "{path: /etc, is: dir}", "{command: [a]}", "{any: {path: /etc}}"],
)
def test_schema_refuses_wrong_conditions(condition: str) -> None:
    assert wrong("include", f"- package: nginx\n  when_host: {condition}\n")


@pytest.mark.parametrize("entry", ["include: web", "include: part.yml", "resources: [{package: nginx}]"])
def test_schema_knows_the_conditions_of_blocks(entry: str) -> None:
    assert wrong("include", f"- {entry}\n  when_host: {{package: nginx}}\n") == []
    assert wrong("include", f"- {entry}\n  when_host: {{pakage: nginx}}\n")
