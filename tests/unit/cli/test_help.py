"""The help explains all commands and options, and the parser accepts its examples."""

from __future__ import annotations

import inspect
import re
import shlex
from importlib import import_module

import click
import pytest
from click.testing import CliRunner

from statecfg.cli.main import VERBS, statecfg
from tests.each import each


def test_overview_names_every_verb():
    shown = CliRunner().invoke(statecfg, ["--help"]).output
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", shown, re.M)
    assert "Exit status" in shown


@each("verb", VERBS)
def test_every_option_is_explained_and_every_verb_has_examples(verb):
    command = import_module(f"statecfg.cli.{VERBS[verb][0]}").command
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.help.endswith("."), parameter.name
    assert command.help
    lines = [line for line in command.examples.strip().splitlines() if line.strip()]
    assert len(lines) >= 2


@each("verb", sorted({module for module, _ in VERBS.values()}))
def test_examples_of_every_verb_parse(verb, tmp_path, monkeypatch):
    command = import_module(f"statecfg.cli.{verb}").command
    monkeypatch.chdir(tmp_path)
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks" / "web.yml").write_text("")
    (tmp_path / "web.plan").write_text("")
    for line in command.examples.strip().splitlines():
        text = re.split(r"\s{2,}|[|>)]|;", line.strip())[0]
        words = shlex.split(text.removeprefix('eval "$('))
        assert words[0] == "statecfg"
        given = [str(tmp_path / "playbooks/web.yml") if "*" in word and "/" in word else word for word in words[2:]]
        statecfg.get_command(click.Context(statecfg), words[1]).make_context(words[1], given).close()


def subcommands(command, path):
    """Yield the subcommands of a verb, at all depths, with their paths."""
    for name, inner in getattr(command, "commands", {}).items():
        yield (*path, name), inner
        yield from subcommands(inner, (*path, name))


@each("verb", ["entity", "hook", "hosts", "secret", "serve", "service", "store"])
def test_help_of_every_subcommand_explains_it_with_examples_that_parse(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/web.yml").write_text("hosts: all\nresources: []\n")
    called = []
    found = list(subcommands(import_module(f"statecfg.cli.{VERBS[verb][0]}").command, (verb,)))
    for path, command in found:
        shown = CliRunner().invoke(statecfg, [*path, "--help"], terminal_width=500, max_content_width=500).output
        summary = inspect.cleandoc(command.help).split("\n\n")[0]
        assert shown.startswith(f"Usage: statecfg {' '.join(path)} ") and "Examples:" in shown, path
        assert " ".join(summary.split()) in " ".join(shown.split()), path
        if not isinstance(command, click.Group):  # parse its examples, but don't run it
            monkeypatch.setattr(command, "callback", lambda *_, path=path, **__: called.append(path))
    for path, command in found:
        for line in command.examples.strip().splitlines():
            words = shlex.split(re.split(r"\s{2,}|[|>)]|;", line.strip())[0])
            ran = CliRunner().invoke(statecfg, words[1:])
            assert ran.exit_code == 0 and words[0] == "statecfg", (line, ran.output)
            assert called.pop()[: len(path)] == path and called == [], line


@pytest.mark.parametrize(
    "flags", ["-i -l -t -e -f -b -K -u -v --diff --json --json-into --no-color --inventory --limit --tags"]
)
def test_plan_and_apply_accept_the_usual_flags(flags):
    for verb in ("plan", "apply"):
        command = import_module(f"statecfg.cli.{verb}").command
        known = {flag for parameter in command.params for flag in parameter.opts}
        assert known.issuperset(flags.split())
