"""Completion of verbs and options in bash, zsh and fish."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests import ROOT


def statecfg(*arguments, cwd=None, **environ):
    return subprocess.run(
        [sys.executable, "-m", "statecfg", *arguments], cwd=cwd, env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_statecfg(shell):
    given = statecfg("completion", shell)
    assert given.returncode == 0, given.stderr
    assert f"_STATECFG_COMPLETE={shell}_complete" in given.stdout
    assert "statecfg" in given.stdout


def test_the_bash_script_has_valid_syntax(tmp_path):
    bash = shutil.which("bash")
    assert bash is not None
    script = tmp_path / "complete.bash"
    script.write_text(statecfg("completion", "bash").stdout)
    checked = subprocess.run([bash, "-n", str(script)], capture_output=True, text=True, timeout=30, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("words", "number", "expected", "unexpected"),
    [
        ("statecfg pl", "1", "plain,plan", "plain,apply"),
        ("statecfg plan --ex", "2", "plain,--extra-vars", "plain,--forks"),
        ("statecfg graph --format m", "3", "plain,mermaid", "plain,svg"),
        ("statecfg completion ", "2", "plain,zsh", "plain,plan"),
    ],
)
def test_verbs_and_options_are_completed(words, number, expected, unexpected):
    given = statecfg(_STATECFG_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=number)
    assert expected in given.stdout.splitlines()
    assert unexpected not in given.stdout.splitlines()
    assert given.returncode == 0


def offered(project, *words, **environ):
    given = statecfg(
        _STATECFG_COMPLETE="bash_complete", COMP_WORDS=" ".join(["statecfg", *words]), COMP_CWORD=str(len(words)),
        cwd=project, **environ,
    )  # fmt: skip
    assert given.returncode == 0 and not given.stderr, given.stderr
    return [line.removeprefix("plain,") for line in given.stdout.splitlines() if line]


def test_hosts_tags_and_plans_of_a_project_are_offered(tmp_path):
    (tmp_path / "inventory.yml").write_text(
        "hosts: {web1: , web2: {vars: {pw: !secret {env: NOT_SET}}}, db1: }\ngroups: {web: {hosts: [web1, web2]}}\n"
    )
    assert offered(tmp_path, "facts", "w") == ["web", "web1", "web2"]
    for words in (["destroy", "--hosts"], ["service", "add-unit", "web", "--host"], ["hook", "create", "--hosts"]):
        assert offered(tmp_path, *words, "w") == ["web", "web1", "web2"]
    assert offered(tmp_path, "plan", "-l", "db1,!we") == ["db1,!web", "db1,!web1", "db1,!web2"]
    (tmp_path / "more.yml").write_text("resources:\n- file: /x\n  tags:\n  - motd\n  - late\n")
    (tmp_path / "site.yml").write_text(
        "hosts: all\ninclude: more.yml\nresources:\n- file: /y\n  tags: [net, 'mail']\n- file: /z\n  tags: solo\n"
    )
    (tmp_path / "site.py").write_text("print('not run')\nfile('/x', tags=['one', \"two\"])\n")
    assert offered(tmp_path, "plan", "site.yml", "-t", "") == ["late", "mail", "motd", "net", "solo"]
    assert offered(tmp_path, "plan", "site.py", "-t", "one,t") == ["one,two"]
    assert offered(tmp_path, "service", "show", "w", STATECFG_STORE=str(tmp_path / "none.db")) == []
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "a.plan").write_text('{"format": "statecfg plan", "version": 2,')
    (tmp_path / "b.plan").write_text("no plan")
    assert offered(tmp_path, "show", "") == ["a.plan"]
    assert offered(tmp_path, "show", "b") == ["file,b"]
    (tmp_path / "inventory.yml").write_text("hosts: [[[")
    assert offered(tmp_path, "facts", "w") == []


def test_services_and_units_are_offered(tmp_path):
    (tmp_path / "service.yml").write_text("- service: web\n  hosts: '@local'\n  resources: []\n")
    own = {"STATECFG_STORE": str(tmp_path / "store.db"), "STATECFG_STATE_DIR": str(tmp_path / "state")}
    applied = statecfg("apply", "service.yml", "--yes", cwd=tmp_path, **own)
    assert applied.returncode == 0, applied.stderr
    assert offered(tmp_path, "service", "show", "w", **own) == ["web", "web/0"]
    assert offered(tmp_path, "service", "resolved", "w", **own) == ["web/0"]
