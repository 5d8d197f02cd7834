"""Messages that quote a value show the mask of each secret in it, whatever kind of value it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from statecfg.cli import vars
from statecfg.hooks.registration import files
from statecfg.playbook.project import Project
from statecfg.problems import InvalidInput, tokens
from statecfg.run import prepare
from tests.each import each

VALUE = 'zebra\'s "crossing" & <co>'
PARTS = ("zebra", "crossing")  # no message contains these words by chance
MASK = "<secret TOKEN>"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a project, and the only secret of this process in the variable TOKEN."""
    monkeypatch.setattr(tokens, "_SECRETS", {})
    monkeypatch.setenv("TOKEN", VALUE)
    (tmp_path / "statecfg.toml").write_text("")
    return tmp_path


def told(project: Path, text: str, name: str = "site.yml", extra: Mapping[str, Any] | None = None) -> str:
    """Return the text of all problems of a playbook. Check that it contains no part of the secret."""
    (project / name).write_text(text)
    with pytest.raises(InvalidInput) as caught:
        prepare.playbook(project / name, prepare.Choice(extra=extra or {}))
    return checked(caught.value)


def checked(error: InvalidInput) -> str:
    text = str(error)
    assert error.problems and all(item.locations for item in error.problems), text
    assert not [part for part in PARTS if part in text.lower()], text
    assert max(len(item.detail) for item in error.problems) <= 1000
    return text


YAML = 'hosts: "@local"\nvars: {token: !secret {env: TOKEN}}\nresources:\n'
FILE = "  - file: /a\n    content: a\n"
ENTRIES = {
    "argument": ('  - file: "/etc/{{ token }}"\n    content: a\n', f"'/etc/{MASK}'"),
    "requires": (f'{FILE}    requires: ["file:{{{{ token }}}}"]\n', f"['file:{MASK}']"),
    "restart_on": ('  - service: x\n    restart_on: ["{{ token }}"]\n', f"[{MASK}]"),
    "tags": (f'{FILE}    tags: ["{{{{ token }}}}", b]\n', f"[{MASK}, 'b']"),
    "wrong tags": (f"{FILE}    tags: \"{{{{ {{'a': token}} }}}}\"\n", f"{{'a': {MASK}}}"),
    "provides": (f'{FILE}    provides: "x {{{{ token }}}}"\n', f"'x {MASK}'"),
    "protect": (f'{FILE}    protect: "{{{{ token }}}}"\n', MASK),
    "wrong value": ('  - line_in_file: /a\n    line: "a\\n{{ token }}"\n', f"'a\\n{MASK}'"),
    "wrong type": ('  - file: /a\n    content: "{{ [token] }}"\n', f"[{MASK}] is a list"),
    "number": ('  - user: bob\n    uid: "{{ token }}"\n', f"got a Secret: {MASK}"),
    "time": ('  - command: a\n    argv: [x]\n    timeout: "{{ token }}"\n', f"got a Secret: {MASK}"),
    "boolean": ('  - service: x\n    running: "{{ token }}"\n', f"got a Secret: {MASK}"),
    "list": ('  - command: a\n    argv: "{{ token }}"\n', f"got a Secret: {MASK}"),
    "element of a list": ('  - user: bob\n    groups: ["{{ token }}"]\n', "`groups` of user contains a secret: ["),
    "map": ('  - command: a\n    argv: [x]\n    env: "{{ token }}"\n', f"got a Secret: {MASK}"),
    "element of a map": ('  - command: a\n    argv: [x]\n    env: {A: "{{ [token] }}"}\n', f"got a list: [{MASK}]"),
    "variables of a template": ('  - file: /a\n    template: a.j2\n    vars: "{{ token }}"\n', MASK),
    "process": ('  - process: /x\n    user: a\n    group: a\n    env: {}\n    args: "{{ token }}"\n', "`args`"),
    "when": (f"{FILE}    when: token\n", "`when:`"),
    "for_each": (f'{FILE}    for_each: "{{{{ token }}}}"\n', "`for_each:`"),
    "include": ('  - include: !secret {env: TOKEN}\n', "`include:`"),
    "wrong secret": ("  - file: /a\n    content: !secret {env: TOKEN, nam: x}\n", "`nam`"),
}  # fmt: skip


@each("kind", ENTRIES)
def test_message_about_a_resource_masks_the_secret(project: Path, kind: str) -> None:
    entry, shows = ENTRIES[kind]
    assert shows in told(project, YAML + entry)


EXPRESSIONS = [
    "token | bool",
    "token | b64decode",
    "token | human_to_bytes",
    "token | from_json",
    "('{' ~ token) | from_yaml",
    "'x' | hash(token)",
    "'x' | b64encode(token)",
    "'x' | password_hash(token)",
    "'x' | comment(token)",
    "'http://x' | urlsplit(token)",
    "'a' | regex_search(token ~ '(')",
    "'a' | regex_search('a', token)",
    "'a' | regex_replace(token, 'b', mandatory_count=3)",
    "'a' | regex_escape(token)",
    "'10.0.0.1' | ipaddr(token)",
    "'b' | extract({'a': token})",
    "token | extract({'a': 1})",
    "token | combine({})",
    "('x' * 35 ~ token) | b64decode",
    "('x' * 5000 ~ token) | b64decode",
    "'b' | extract({'x': 'x' * 50, 'y': token})",
    "{'x': 'x' * 50, 'y': token} | extract({})",
    "[[token]] | combine({})",
    "[{'x': token}, {'x': token}] | rekey_on_member('x')",
    "nothing | mandatory(token)",
    "'1.0' is version(token, 'eq', strict=true)",
    "'1.0' is version(token, version_type='semver')",
    "'1.0' is version('1.0', token)",
    "'1.0' is version('1.0', operator=token)",
    "token is match('(')",
    "{'a': 1}[token]",
    "[1] | map(token) | list",
    "[1] | select(token) | list",
    "[1] | sort(attribute=token) | map('nope') | list",
    "token.nope",
    "token / 2",
    "token + 1",
    "'%d' % token",
    "'{:d}'.format(token)",
    "'x'.encode(token)",
    "'x'.center(token)",
]


@each("expression", EXPRESSIONS)
def test_message_about_a_template_masks_the_secret(project: Path, expression: str) -> None:
    text = told(project, f"{YAML}  - file: /a\n    content: >-\n      {{{{ {expression} }}}}\n")
    (project / "a.j2").write_text(f"{{{{ {expression} }}}}\n")
    # A node type gets the values of the secrets in a node's own variables.
    again = told(project, f'{YAML}  - file: /a\n    template: a.j2\n    vars: {{token: "{{{{ token }}}}"}}\n')
    assert "site.yml:5" in text and "a.j2:1" in again


def test_message_about_a_filter_quotes_no_part_of_a_secret(project: Path) -> None:
    """The parser of YAML quotes the name of an unknown alias."""
    text = f"{YAML}  - file: /a\n    content: \"{{{{ ('*' ~ token) | from_yaml }}}}\"\n"
    assert f"fails on {MASK}" in told(project, text)


def test_failing_filter_and_test_name_the_secret_and_say_what_to_write(project: Path) -> None:
    text = told(project, f'{YAML}  - file: /a\n    content: "{{{{ token | bool }}}}"\n')
    assert f"the filter `bool` fails on {MASK}" in text and "help: write one of: yes" in text
    text = told(project, f"{YAML}  - file: /a\n    content: \"{{{{ '1' is version('1', token) }}}}\"\n")
    assert f"the test `version` fails on {MASK}" in text and "help: write one of: ==" in text


PYTHON = """\
from statecfg import deploy, merge_graphs, play, relate, secret
from statecfg.resources import command, file

token = secret("TOKEN", env="TOKEN")

"""
PLAY = PYTHON + '@play(hosts="@local")\ndef site(host):\n    '
CODE = {
    'return file("/a", content="a", requires=[{"a": token}])': f"[{{'a': {MASK}}}]",
    'return file("/a", content="a", tags=[f"{token}"])': f"[{MASK}]",
    'return file("/a", content="a", provides=[token])': f"[{MASK}]",
    'return file("/a", **{f"{token}": 1})': f"`{MASK}`",
    'return file("/a", mode=f"{token}")': f"the value of {MASK}",
    'return command("a", argv=["x"], env={"A": {1: token}})': f"{{1: {MASK}}}",
    'return host.vars[f"{token}"]': MASK,
    "return merge_graphs(token)": "a Secret",
    "raise ValueError({1: token})": f"{{1: {MASK}}}",
    "raise KeyError(token.reveal())": MASK,
    "assert not token, token": MASK,
    "import importlib; importlib.import_module(token.reveal())": f"No module named '{MASK}'",
    "open(token.reveal())": MASK,
    "return getattr(host, token.reveal())": MASK,
}


@each("code", CODE)
def test_message_about_a_play_masks_the_secret(project: Path, code: str) -> None:
    assert CODE[code] in told(project, f"{PLAY}{code}\n", "site.py")


OPTIONS = {
    "hosts={token: 1}": f"{{{MASK}: 1}}",
    "hosts=[[token]]": f"[[{MASK}]]",
    'hosts="@local", vars=token': MASK,
    'hosts="@local", prune=token': MASK,
    'hosts="@local", prune=f"{token}"': "`prune`",
    'hosts="@local", name=[token]': "`name`",
}


@each("options", OPTIONS)
def test_message_about_the_options_of_a_play_masks_the_secret(project: Path, options: str) -> None:
    assert OPTIONS[options] in told(project, f"{PYTHON}@play({options})\ndef x(host): ...\n", "site.py")


NODE_TYPE = """\
from typing import Any
from statecfg import node_type

@node_type
def TYPE(name: str, *, text: str, more: Any = None) -> None: ...

"""
METHODS = {
    "@TYPE.validate\ndef check(attrs):\n    raise ValueError('not ' + attrs['text'].reveal())\n": f"not {MASK}",
    "@TYPE.validate\ndef check(attrs):\n    raise KeyError(attrs['text'].reveal())\n": MASK,
    "@TYPE.to_wire\ndef sent(node):\n    raise ValueError('not ' + node.attrs['text'])\n": f"not {MASK}",
    "@TYPE.to_wire\ndef sent(node):\n    raise OSError('not ' + node.attrs['text'])\n": f"not {MASK}",
    "@TYPE.to_wire\ndef sent(node):\n    raise KeyError(node.attrs['text'])\n": MASK,
    "@TYPE.to_wire\ndef sent(node):\n    return node.with_attrs(more={1: node.attrs['text']})\n": "the key of a map",
    "@TYPE.to_wire\ndef sent(node):\n    return node.with_attrs(more={node.attrs['text']})\n": MASK,
}


@pytest.mark.parametrize("method", METHODS)
def test_message_about_a_node_type_masks_the_secret(project: Path, method: str) -> None:
    (project / "resources").mkdir()
    name = f"quoted{list(METHODS).index(method)}"  # a process keeps the modules of node types
    (project / "resources" / f"{name}.py").write_text((NODE_TYPE + method).replace("TYPE", name))
    assert METHODS[method] in told(project, f'{YAML}  - {name}: x\n    text: "{{{{ token }}}}"\n')


SERVICE = 'hosts: "@local"\nservice: db\nvars: {token: !secret {env: TOKEN}}\nschema: {title: {}, pin: {type: int}}\n'
SETTINGS = {
    'settings: {title: "{{ [token] }}"}': f"`title` of db is [{MASK}]",
    "settings: {pin: \"{{ {'a': token} }}\"}": f"`pin` of db is {{'a': {MASK}}}",
    'settings: {pin: "{{ [token | upper] }}"}': f"`pin` of db is [{MASK}]",
    'settings: {title: "a {{ token }}"}': "`title`",
    'settings: {title: "{{ token | bool }}"}': f"fails on {MASK}",
    "settings: !secret {env: TOKEN}": f"`settings` of db is a Secret: {MASK}",
    "timeout: !secret {env: TOKEN}": f"`timeout` of db is a Secret: {MASK}",
    "charm: !secret {env: TOKEN}": f"`charm` of db is a Secret: {MASK}",
    "playbook: !secret {env: TOKEN}": f"`playbook` of db is a Secret: {MASK}",
}


@each("part", SETTINGS)
def test_message_about_a_service_masks_the_secret(project: Path, part: str) -> None:
    assert SETTINGS[part] in told(project, f"{SERVICE}{part}\n")


DEPLOYED = {
    'schema={"a": token}': f"option `a` is a Secret: {MASK}",
    'schema={"a": {"type": token}}': f"option `a` is of type {MASK}",
    'schema={"a": {"default": [token]}}': f"the default of option `a` is [{MASK}]",
    'schema={"a": {f"{token}": 1}}': f"a key `{MASK}`",
    'timeout=f"{token}"': f"`{MASK}` is not an ISO 8601 duration",
    'charm=f"{token}"': f"/{MASK}",
    "charm=[token]": f"[{MASK}]",
}


@each("part", DEPLOYED)
def test_message_about_a_service_in_python_masks_the_secret(project: Path, part: str) -> None:
    text = f'{PYTHON}@deploy(hosts="@local", {part})\ndef db(host): ...\n'
    assert DEPLOYED[part] in told(project, text, "site.py")


@each(("end", "shows"), [("token", MASK), ("[token]", f"[{MASK}]"), ('f"db:{token}"', "'db:")])
def test_message_about_a_relation_masks_the_secret(project: Path, end: str, shows: str) -> None:
    text = f'{PYTHON}@deploy(hosts="@local")\ndef db(host): ...\nrelate({end}, "x:a")\n'
    assert shows in told(project, text, "site.py")


@each(
    "inventory",
    [
        'hosts: {"@local": {vars: {token: !secret {env: TOKEN}}}}\n',
        'hosts: {"@local": }\ngroups: {all: {vars: {token: !secret {env: TOKEN}}}}\n',
    ],
)
def test_message_masks_a_secret_of_the_inventory(project: Path, inventory: str) -> None:
    (project / "inventory.yml").write_text(inventory)
    text = 'hosts: "@local"\nresources:\n  - {file: /a, content: a, owner: "a {{ token }}"}\n'
    assert f"the value of 'a {MASK}' is not a user name" in told(project, text)


def test_message_masks_a_secret_beside_a_variable_of_the_command_line(project: Path) -> None:
    extra = vars.extra_vars(["before=not "], project)
    text = f'{YAML}{FILE}    owner: "{{{{ before }}}}{{{{ token }}}}"\n'
    assert f"the value of 'not {MASK}' is not a user name" in told(project, text, extra=extra)


def test_secret_in_a_file_of_variables_is_refused_with_its_place(project: Path) -> None:
    (project / "vars.yml").write_text("a: 1\ntoken: !secret {env: TOKEN}\n")
    with pytest.raises(InvalidInput) as caught:
        vars.extra_vars(["@vars.yml"], project)
    assert "vars.yml:2:8" in checked(caught.value)


@pytest.mark.parametrize(
    "spec",
    [
        "{exec: {type: x, configuration: {password: !secret {env: TOKEN}}}, events: [post-create]}",
        "{exec: {type: !secret {env: TOKEN}}, events: [post-create]}",
        "{exec: {type: x}, events: [!secret {env: TOKEN}]}",
        "{exec: {type: x}, events: [post-create], order: !secret {env: TOKEN}}",
        "{exec: {type: x}, events: [post-create], deadline: !secret {env: TOKEN}}",
        "{exec: {type: x}, events: [post-create], where: !secret {env: TOKEN}}",
        "{hook: {version: v1, address: {uri: !secret {env: TOKEN}}, capabilities: [finalize]}}",
    ],
)
def test_secret_in_an_option_of_a_hook_is_refused_with_its_place(project: Path, spec: str) -> None:
    (project / "hooks").mkdir(mode=0o755)
    (project / "hooks" / "one.yml").write_text(f"metadata: {{name: one}}\nspec: {spec}\n")
    (project / "hooks" / "one.yml").chmod(0o644)
    with pytest.raises(InvalidInput) as caught:
        files.load(Project(project))
    assert "hooks/one.yml:2:" in checked(caught.value)
