"""A variable can't have the name `host`, which templates use for the host's name and groups."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from statecfg.cli.vars import extra_vars
from statecfg.problems import InvalidInput
from statecfg.run import prepare
from tests.each import each

INVENTORY = "hosts: {web1: {vars: {%s: 1}}}\ngroups: {web: {hosts: [web1], vars: {%s: 1}}}\n"
PLAY = "hosts: web1\nvars: {%s: 1}\nresources:\n  - include: more.yml\n    vars: {%s: 1}\n"
MORE = "vars: {%s: 1}\nresources: []\n"
PYTHON = """\
from statecfg import play

@play(hosts="web1", vars={"%s": 1})
def site(): ...
"""


@each(
    ("file", "names", "line"),
    [
        ("inventory.yml", ("host", "x"), 1),
        ("inventory.yml", ("x", "host"), 2),
        ("play.yml", ("host", "x"), 2),
        ("play.yml", ("x", "host"), 5),
        ("more.yml", ("host",), 1),
        ("play.py", ("host",), 3),
    ],
)
def test_variable_can_not_be_called_host(tmp_path: Path, file: str, names: tuple[str, ...], line: int) -> None:
    texts = {"inventory.yml": INVENTORY, "play.yml": PLAY, "more.yml": MORE, "play.py": PYTHON}
    for name, text in texts.items():
        (tmp_path / name).write_text(text % (names if name == file else ("x",) * text.count("%s")))
    playbook = tmp_path / ("play.py" if file == "play.py" else "play.yml")
    with pytest.raises(InvalidInput) as caught:
        prepare.playbook(playbook, prepare.Choice(tmp_path / "inventory.yml"))
    (found,) = caught.value.problems
    assert (found.detail, found.help) == ("`host` is reserved", "choose another name")
    assert (Path(found.locations[0].file).name, found.locations[0].line) == (file, line)


def test_variable_of_the_command_line_can_not_be_called_host(tmp_path: Path) -> None:
    (tmp_path / "v.yml").write_text("x: 1\nhost: 2\n")
    (tmp_path / "v.json").write_text(json.dumps({"host": 2}))
    for argument in ("host=2", '{"host": 2}', "@v.json"):
        with pytest.raises(click.BadParameter, match="`host` is reserved; choose another name"):
            extra_vars([argument], tmp_path)
    with pytest.raises(InvalidInput) as caught:
        extra_vars(["@v.yml"], tmp_path)
    (found,) = caught.value.problems
    assert (found.detail, found.locations[0].line) == ("`host` is reserved", 2)


def test_message_about_a_wrong_name_of_a_variable_quotes_only_the_name(tmp_path: Path) -> None:
    with pytest.raises(click.BadParameter, match="`1x` is not a valid variable name: use letters"):
        extra_vars(["1x=3"], tmp_path)
    with pytest.raises(click.BadParameter, match="'x' is not key=value"):
        extra_vars(["x"], tmp_path)


def test_play_without_parentheses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "play.py").write_text("from statecfg import play\n\n@play\ndef site(): ...\n")
    with pytest.raises(InvalidInput) as caught:
        prepare.playbook(tmp_path / "play.py", prepare.Choice())
    (found,) = caught.value.problems
    assert (found.code, found.help, found.locations[0].line) == ("SC0512", 'write @play(hosts="web")', 3)
