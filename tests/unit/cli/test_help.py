"""Help that is quick, complete and true: every verb and option explained, examples that parse."""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module

import click
import pytest
from click.testing import CliRunner

import statecfg as package
from statecfg.cli.main import VERBS, VERSION, statecfg
from tests import ROOT

# What may never be imported to show help: each costs more than all of help may.
HEAVY = ("paramiko", "cryptography", "hy", "yaml", "rich", "jinja2", "pyrsistent", "toposort", "asyncio", "PIL")


def run(*arguments, **environ):
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "statecfg", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_help_imports_nothing_heavy():
    shown = run("--help")
    assert shown.returncode == 0
    modules = {row.rpartition("|")[2].strip().partition(".")[0] for row in shown.stderr.splitlines()}
    assert "click" in modules
    assert modules.isdisjoint(HEAVY)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_imports_nothing_heavy(verb):
    shown = run(verb, "--help")
    assert shown.returncode == 0
    modules = {row.rpartition("|")[2].strip().partition(".")[0] for row in shown.stderr.splitlines()}
    assert modules.isdisjoint(HEAVY)


def test_help_takes_at_most_150_ms_of_cpu():
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "statecfg", "--help"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) <= 0.15


def test_overview_names_every_verb():
    shown = CliRunner().invoke(statecfg, ["--help"]).output
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", shown, re.M)
    assert "Exit status" in shown


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_explained_and_every_verb_has_examples(verb):
    command = import_module(f"statecfg.cli.{VERBS[verb][0]}").command
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.help.endswith("."), parameter.name
    assert command.help
    lines = [line for line in command.examples.strip().splitlines() if line.strip()]
    assert len(lines) >= 2


@pytest.mark.parametrize("verb", sorted({module for module, _ in VERBS.values()}))
def test_examples_parse(verb, tmp_path, monkeypatch):
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


def test_version_is_the_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert VERSION == package.__version__ == project["version"]
    assert run("--version").stdout == f"statecfg {VERSION}\n"


def test_an_unknown_verb_gets_a_suggestion():
    shown = run("aply", "x.yml")
    assert shown.returncode == 5
    assert "There is no verb `aply`. Did you mean `apply`?" in shown.stderr


@pytest.mark.parametrize(
    "flags", ["-i -l -t -e -f -b -K -u -v --diff --json --json-into --no-color --inventory --limit --tags"]
)
def test_the_flags_people_know(flags):
    for verb in ("plan", "apply"):
        command = import_module(f"statecfg.cli.{verb}").command
        known = {flag for parameter in command.params for flag in parameter.opts}
        assert known.issuperset(flags.split())
