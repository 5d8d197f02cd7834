"""What statecfg says about frequent mistakes in YAML: one problem for each mistake, with a help that fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecfg.problems import InvalidInput
from statecfg.run import prepare
from tests.each import each

# An entry, the code, a part of the detail, a part of the help.
MISTAKES = [
    ("{command: a, argv: 'ls -l'}", "SC0201", "got a string: 'ls -l'", "write a list: ['ls', '-l']"),
    ("{command: a, argv: [true]}", "SC0201", "element 1: expected a string, got a boolean", 'quotes: "true"'),
    ("{file: /x, content: '{{ ports }}'}", "SC0202", "is a list, not a string or bytes", "{{ … | join(',') }}"),
    ("{file: /x, content: '{{ table }}'}", "SC0202", "is a map, not a string or bytes", "{{ … | tojson }}"),
    ("{file: /x, content: [1]}", "SC0202", "is a list, not a string or bytes", "write it as a string"),
    ("{file: /x, content: true}", "SC0202", "is a boolean, not a string or bytes", 'put it in quotes: "true"'),
    ("{file: /x, content: '', when: host.name = 'x'}", "SC0320", "got '='", "to compare, write `==`"),
    ("{file: /x, content: '{{ ports'}", "SC0320", "unexpected end", "close `{{` with `}}`"),
    ("{file: {{ ports }}}", "SC0308", "a map can't be a key", '"{{ name }}"'),
    ("{file: /x, content: !secret {envv: X}}", "SC0422", "no key `envv`", "did you mean `env`"),
    ("/etc/motd", "SC0316", "the string '/etc/motd'", "such as - file: /etc/motd"),
    ("nginx", "SC0316", "the string 'nginx'", "such as - package: nginx"),
    ("{file: /x, state: absent}", "SC0316", "no key `state`", "write `absent: true`"),
    (
        "{process: /bin/x, user: root, group: root, env: {}, args: ['{{ token }}']}",
        "SC0425",
        "`args` of process:/bin/x contains a secret",
        "into `env`",
    ),
    ("{command: a, shell: 'x {{ token }}'}", "SC0425", "`shell` of command:a contains a secret", "into `env`"),
]


@each(("entry", "code", "detail", "help_text"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_mistake_has_one_problem_with_a_help_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, code: str, detail: str, help_text: str
) -> None:
    monkeypatch.setenv("TOKEN", "correct-horse")
    playbook = tmp_path / "play.yml"
    variables = "{ports: [80], table: {a: 1}, token: !secret {env: TOKEN}}"
    playbook.write_text(f"hosts: '@local'\nvars: {variables}\nresources:\n  - {entry}\n")
    with pytest.raises(InvalidInput) as caught:
        prepare.playbook(playbook, prepare.Choice())
    (found,) = caught.value.problems
    assert (found.code, found.locations[0].line) == (code, 4)
    assert detail in found.detail and help_text in found.help
