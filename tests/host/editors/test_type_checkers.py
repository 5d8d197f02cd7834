"""mypy and pyright find wrong attributes in the playbooks of a new project, also of the project's own node types."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests import ROOT
from tests.host.command import run
from tests.host.editors.language_server import program

# Node types of the project, in Python and Hy.
OWN = {
    "vhost.py": '''
from statecfg import Port, node_type


@node_type
def vhost(name: str, *, port: Port, tls: bool = False, env: dict[str, str] | None = None) -> None:
    """Manage a virtual host.

    :param port: the port that clients connect to
    """
''',
    "queue.hy": """
(require statecfg.dialects.hy [node-type make-validators])
(import statecfg.dialects.hy [some-fn string? number? true? false?])
(node-type queue "Manage a queue." :arguments [name] :required-attrs [size] :optional-attrs [durable?])
(make-validators
  (name string?)
  (size number?)
  (durable? (some-fn true? false?)))
""",
}
GOOD = """
from typing import Any

from statecfg import HostContext, play, secret
from statecfg.resources import file, process, queue, service, vhost


@play(hosts="web", vars={"port": 8080})
def web(host: HostContext) -> Any:
    shop = vhost("shop", port=80, tls=True, requires=["package:nginx"], env={"A": secret("x", env="X")})
    site = file("/etc/motd", content=b"x", mode="0644", requires=[shop])
    queue("jobs", size=1.5, hyx_durableXquestion_markX=True)
    service("nginx", running=True, restart_on=[site])
    return process("/bin/x", user="ann", group="ann", env={}, args=["-v"], tags=["x"])
"""
BAD = """
from statecfg.resources import file, process, queue, service, vhost

process(5, user="ann", group="ann", env={}, args=[])
process("/bin/x", user="ann", group="ann", env={}, args=[], nosuch=1)
process("/bin/x", user="ann", group="ann", env={})
vhost("shop", port="80")
vhost("shop", port=80, nosuch=1)
vhost("shop")
queue("jobs", size="big")
queue("jobs", size=1, nosuch=1)
file("/etc/motd", moed="0644")
file("/etc/motd", mode=0o644)
service("nginx", on_change="reboot")
"""
WRONG = {number for number, line in enumerate(BAD.splitlines(), 1) if "(" in line}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new project with its own node types, a correct playbook and a wrong one."""
    directory = tmp_path_factory.mktemp("project")
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert run(["init", "."], directory, environ).returncode == 0
    assert not (directory / "statecfg_project.pyi").exists()
    for name, text in OWN.items():
        (directory / "resources" / name).write_text(text)
    written = run(["schema", "--write"], directory, environ)
    assert "wrote statecfg_project.pyi\n" in written.stdout, written.stderr
    (directory / "playbooks/good.py").write_text(GOOD)
    (directory / "playbooks/bad.py").write_text(BAD)
    return directory


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a Python in which statecfg is installed, as for users: type checkers don't report its own errors."""
    directory = tmp_path_factory.mktemp("installed")
    venv.create(directory, with_pip=False)
    (packages,) = directory.glob("lib/python*/site-packages")
    (packages / "statecfg.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    return str(directory / "bin/python")


def lines_of_mypy(output: str) -> list[tuple[str, int]]:
    return [(name, int(line)) for name, line in re.findall(r"^playbooks/(\w+)\.py:(\d+): error:", output, re.M)]


def test_strict_mypy_finds_each_wrong_line(project: Path, python: str) -> None:
    cache = project / ".mypy_cache"
    argv = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "--cache-dir", str(cache)]
    environ = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MYPYPATH")}
    checked = subprocess.run(
        [*argv, "playbooks/good.py", "playbooks/bad.py"], cwd=project, env=environ, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert set(lines_of_mypy(checked.stdout)) == {("bad", line) for line in WRONG}, checked.stdout + checked.stderr
    assert 'Unexpected keyword argument "nosuch"' in checked.stdout


def test_pyright_finds_each_wrong_line(project: Path, python: str) -> None:
    argv = [str(program("pyright")), "--pythonpath", python, "--outputjson", "playbooks"]
    (project / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "reportUnusedExpression": false}')
    checked = subprocess.run(argv, cwd=project, capture_output=True, text=True, timeout=300, check=False)
    found = json.loads(checked.stdout)["generalDiagnostics"]
    lines = {(Path(item["file"]).stem, item["range"]["start"]["line"] + 1) for item in found}
    assert lines == {("bad", line) for line in WRONG}, checked.stdout
    assert any('No parameter named "nosuch"' in item["message"] for item in found)
