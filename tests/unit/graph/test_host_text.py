"""Texts of hosts: what keeps their mark, and where they are refused."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg import resources, templates
from statecfg.graph import host_text, host_text_rules, schema
from statecfg.graph.host_text import HostText, harmful, told
from statecfg.problems import InvalidInput
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.nodetype import REGISTRY, NodeType
from tests.each import each

HERE = SourceLocation("play.yml", 7, 3)
EVIL = "$(id)>/tmp/x"


@pytest.fixture(autouse=True)
def evaluation() -> Iterator[None]:
    with host_text.watching(host_text.Watch()):
        yield


def evaluate(text: str, **more: Any) -> Any:
    return templates.evaluate(text, {"name": told(EVIL), "good": told("web1.example.org"), **more}, HERE)


@each(
    "text",
    [
        "echo {{ name }}",
        "{{ name }}",
        "{{ 'echo ' ~ name }}",
        "{{ 'echo ' + name }}",
        "{{ 'echo %s' % name }}",
        "{{ 'echo {}'.format(name) }}",
        "{{ ['echo', name] | join(' ') }}",
        "{{ ' '.join(['echo', name]) }}",
        "{{ name | upper }}",
        "{{ name.upper() }}",
        "{{ name | replace('i', 'I') }}",
        "{{ [name] | map('upper') | first }}",
        "{{ {'a': name} | to_json }}",
        "{{ ({'a': name} | to_json | from_json).a }}",
        "{{ name | regex_replace('x', 'y') }}",
        "{% set x %}a {{ name }}{% endset %}{{ x }}",
        "{% macro m(a) %}b {{ a }}{% endmacro %}{{ m(name) }}",
        "{% for one in [name] %}{{ one }}{% endfor %}",
        "{% for letter in name %}{{ letter | upper }}{% endfor %}",
        "{{ name | map('upper') | join }}",
        "{{ 2 * name }}",
        "{{ (name | b64encode | b64decode) }}",
    ],
)
def test_the_mark_survives_templates(text):
    assert harmful(evaluate(text))


@each(
    "text",
    ["echo {{ good }}", "echo {{ name | quote }}", "echo {{ ('a ' ~ name) | quote }}", "{{ name | length }}", "x"],
)
def test_harmless_and_quoted_texts_are_not_refused(text):
    found = evaluate(text)
    assert not isinstance(found, str) or not harmful(found)


def test_the_mark_survives_python() -> None:
    name = told(EVIL)
    for text in (
        name + "a",
        "a" + name,
        name.strip(),
        name[1:],
        f"echo {name}",
        2 * name,
        name[::-1],
        "".join(["a", name]),
    ):
        assert harmful(text), text
    assert not harmful(f"echo {shlex.quote(name)}")
    assert str(Path("/srv") / name) == f"/srv/{EVIL}"  # other code gets ordinary text
    assert type(str(name)) is str
    assert type(told({"a": [EVIL]})["a"][0]) is HostText
    assert told(3) == 3


def refused(node: str, argument: str, **attrs: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        getattr(resources, node)(argument, **attrs)
    found = next(found for found in caught.value.problems if found.code == "SC0524")
    assert found.help
    return found.detail


@each(
    ("node", "attrs"),
    [
        ("command", {"shell": "echo {}", "always": True}),
        ("command", {"argv": ["sh", "-c", "echo {}"], "always": True}),
        ("command", {"argv": ["{}", "x"], "always": True}),
        ("command", {"argv": ["sudo", "{}"], "always": True}),
        ("command", {"argv": ["ssh", "h", "{}"], "always": True}),
        ("command", {"argv": ["true"], "unless": "test -e {}"}),
        ("cron", {"schedule": "@daily", "command": "echo {}"}),
        ("systemd_unit", {"sections": {"Service": {"ExecStart": "/usr/bin/echo {}"}}}),
        ("systemd_unit", {"sections": {"Service": {"Environment": ["A={}"]}}}),
        ("systemd_unit", {"content": "[Service]\nExecStart=/usr/bin/echo {}\n"}),
        ("sudoers", {"users": ["{}"], "commands": ["ALL"]}),
        ("sudoers", {"content": "{} ALL=(ALL) ALL\n"}),
        ("logrotate", {"paths": ["/var/log/x"], "scripts": {"postrotate": "echo {}"}}),
        ("logrotate", {"paths": ["/var/log/x"], "directives": ["create 0640 {} adm"]}),
        ("container", {"image": "docker.io/a", "arguments": ["--", "sh", "-c", "{}"]}),
        ("ansible_module", {"module": "ansible.builtin.command", "arguments": {"_raw_params": "echo {}"}}),
        ("ansible_module", {"module": "ansible.builtin.command", "arguments": {"argv": ["sh", "-c", "{}"]}}),
        ("ansible_module", {"module": "ansible.builtin.cron", "arguments": {"name": "a", "job": "echo {}"}}),
        ("nftables", {"content": "table inet a { chain {} { } }"}),
        ("file", {"content": "#!/bin/sh\necho {}\n"}),
    ],
)
def test_text_of_a_host_is_refused_where_it_would_be_code(node, attrs):
    def filled(value: Any, text: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(item, text) for key, item in value.items()}
        if isinstance(value, list):
            return [filled(item, text) for item in value]
        before, found, after = value.partition("{}") if isinstance(value, str) else (value, "", "")
        return before + text + after if found and (before or after) else text if found else value

    name = "a.service" if node == "systemd_unit" else "/a" if node == "file" else "a"
    refused(node, name, **filled(attrs, told(EVIL)))


@each(
    "text",
    [
        """echo "peer {}\"""",
        "cat <<EOF\n{}\nEOF\n",
        "# {}",
        "{} --version",
        "true && {}",
        "sudo {}",
        "eval {}",
        "sh -c {}",
        "ssh web1 {}",
        "echo `echo {}`",
        'echo "${A:-{}}"',
        "echo $(( {} ))",
        "echo $(( 1 + {}",
        "(( (1 + 2) * 3 + {} ))",
        "a[{}]=1",
        "a=([{}]=1)",
        "a=(b [{}]=1)",
        "a=(b); {}",
        "[[ 1 -eq {} ]]",
        "if {}; then true; fi",
    ],
)
def test_quotes_protect_no_text_where_the_shell_runs_it(text):
    name = told(EVIL)
    assert "`shell`" in refused("command", "a", shell=text.replace("{}", shlex.quote(name)), always=True)


@each(
    "text",
    [
        "echo {}",
        'echo "a $(printf %s {}) b"',
        "A={} exec true",
        "cat <<EOF\ntext\nEOF\necho {}\n",
        "cat <<'EOF'\nit's \"x\nEOF\necho {}\n",
        "a=({} b)",
        "a=(\n  {}\n)",
        "if (( (1 + 2) * 3 > 4 )); then echo $((1+2)); fi\necho {}",
        'a="${1:-it\'s}"; echo {}',
        "ssh-keygen -R {}",
        "echo [{}] starts",
        "echo 'it''s' \"a\" \\\" {}",
        "# why\ntest -n {} # a comment",
        "cat <<< {}",
        "for a in {} b; do echo $a; done",
        "true; echo $(id) {} | sort",
    ],
)
def test_quoted_words_are_data_for_the_shell(text):
    resources.command("a", shell=text.replace("{}", shlex.quote(told(EVIL))), always=True)


def test_a_quoted_option_needs_dashes_before_it() -> None:
    option = told("--checkpoint-action=exec=id")
    assert "--checkpoint" in refused("command", "a", shell="tar -cf a " + shlex.quote(option), always=True)
    resources.command("b", shell="tar -cf a -- " + shlex.quote(option), always=True)


@each(
    ("path", "attrs"),
    [
        ("/etc/cron.d/a", {"content": "* * * * * root echo {}\n"}),
        ("/etc/sudoers.d/a", {"content": "{} ALL=(ALL) ALL\n"}),
        ("/etc/systemd/system/a.service", {"content": "[Service]\nExecStart=/bin/echo {}\n"}),
        ("/etc/./profile.d/a.sh", {"content": "echo {}\n"}),
        ("/home/ann/.bashrc", {"content": "echo {}\n"}),
        ("/home/ann/.ssh/config", {"content": "Host a\nProxyCommand echo {}\n"}),
        ("/usr/local/bin/a", {"content": "echo {}\n"}),
        ("/srv/a", {"content": "echo {}\n", "mode": "0755"}),
        ("/srv/a", {"content": "echo {}\n", "mode": "u=rwx"}),
        ("/srv/compose.yaml", {"content": "services: {}\n"}),
        ("/etc/postgresql/15/main/postgresql.conf", {"content": "archive_command = '{}'\n"}),
        ("/etc/udev/rules.d/a.rules", {"content": "{}\n"}),
        ("/srv/a.sql", {"content": "select '{}'\n"}),
    ],
)
def test_text_of_a_host_is_refused_in_files_that_programs_run(path, attrs):
    content = attrs["content"].partition("{}")
    refused("file", path, **{**attrs, "content": content[0] + told(EVIL) + content[2]})


def test_text_of_a_host_is_refused_in_parts_of_files_that_programs_run() -> None:
    name = told(EVIL)
    refused("line_in_file", "/etc/crontab", line="* * * * * root echo " + name)
    refused("block_in_file", "/root/.bashrc", block="echo " + name)
    refused("replace", "/etc/sudoers", pattern="x", replacement=name)
    refused("ini_key", "/etc/systemd/system/a.service", section="Service", key="ExecStart", value="/bin/echo " + name)


@each(
    "path",
    [
        "/etc/ssh/ssh_known_hosts",
        "/etc/ssh/banner",
        "/root/.ssh/known_hosts",
        "/root/.ssh/id.pub",
        "/srv/hooks/a.json",
        "/etc/motd",
        "/etc/machine-info",
        "/etc/hosts",
    ],
)
def test_files_of_data_may_contain_text_of_hosts(path):
    resources.line_in_file(path, line="a " + told(EVIL))


def test_the_key_of_a_known_host_may_come_from_a_host() -> None:
    resources.known_host(
        "web1", key=told("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f")
    )


def test_a_quoted_value_of_a_key_is_data() -> None:
    resources.ini_key("/etc/default/app", key="NAME", value=shlex.quote(told(EVIL)))
    refused("ini_key", "/etc/default/app", key="NAME", value=told(EVIL))


def test_quotes_of_a_shell_protect_only_in_scripts_of_shells() -> None:
    name, lines = shlex.quote(told(EVIL)), shlex.quote(told("x\n* * * * * root id"))
    resources.file("/etc/cron.d/a", content=f"* * * * * root echo {name}\n")
    refused("file", "/etc/cron.d/b", content=f"* * * * * root echo {lines}\n")
    resources.file("/etc/profile.d/a.sh", content=f"echo {lines}\n")
    resources.file("/a", content=f"#!/usr/bin/env bash\necho {lines}\n")
    refused("file", "/b", content=f"#!/usr/bin/python3\nprint({name})\n")
    refused("file", "/etc/sudoers.d/a", content=f"{name} ALL=(ALL) ALL\n")
    refused("systemd_unit", "a.service", sections={"Service": {"ExecStart": f"/bin/echo {name}"}})


def test_text_of_a_host_is_data_elsewhere() -> None:
    name = told(EVIL)
    resources.command("a", argv=["echo", name], env={"A": name}, stdin=name, always=True)
    resources.command("b", argv=["rm", "--", told("-rf")], always=True)
    resources.file("/a", content="hello " + name)
    resources.host_entry("10.0.0.1", names=[told("web1")])
    resources.cron("a", schedule="@daily", command="true", environment={"A": name})
    resources.systemd_unit("a.service", sections={"Unit": {"Description": told("Debian (12)")}})
    resources.command("c", shell="echo " + told("web1.example.org"), always=True)


def test_an_argument_that_would_be_an_option_is_refused() -> None:
    assert "`--`" in refused("command", "a", argv=["rm", told("-rf")], always=True)
    assert "--privileged" in refused("container", "a", image="docker.io/a", arguments=[told("--privileged")])


@each("command", ["test -e {}", ["sh", "-c", "test -e {}"], ["{}", "x"]])
def test_text_of_a_host_is_refused_in_commands_of_conditions(command):
    filled = [
        part.replace("{}", "") + told(EVIL) if "{}" in part else part
        for part in [command] * isinstance(command, str) or command
    ]
    condition = {"command": filled[0] if isinstance(command, str) else filled, "read_only": True, "reads": ["/a"]}
    assert "when_host" in refused("file", "/a", content="x", when_host=condition)
    assert "when_host" in refused("file", "/a", content="x", when_host={"not": condition})


def test_harmless_text_is_no_program() -> None:
    assert "as the program" in refused("command", "a", argv=[told("/tmp/x")], always=True)
    assert "as the program" in refused("command", "a", shell=told("/tmp/x"), always=True)
    assert "as the program" in refused("cron", "a", schedule="@daily", command=told("/tmp/x"))
    for value in (told("/tmp/x"), [told("/tmp/x")]):
        assert "/tmp/x" in refused("systemd_unit", "a.service", sections={"Service": {"ExecStart": value}})


@each("name", resources.available())
def test_types_declare_attributes_that_they_have(name):
    node_type = getattr(resources, name)
    assert node_type.code <= set(schema.of(node_type).fields)


def test_a_type_declares_which_attributes_are_code(monkeypatch):
    attrs = {"type": "motd", "text": "hello " + told(EVIL)}
    motd = NodeType("motd")
    monkeypatch.setitem(REGISTRY, "motd", motd)
    assert [*host_text_rules.problems("motd", attrs)] == []
    motd.reads_as_code("text")
    assert [name for name, *_ in host_text_rules.problems("motd", attrs)] == ["text"]
