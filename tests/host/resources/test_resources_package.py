"""Imports of node types: what they load in a new process, and what type checkers know about them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tests.unit.resources.test_resources_package import ROOT


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_a_submodule_first_still_gives_the_node_type() -> None:
    script = "import statecfg.resources.file; from statecfg.resources import file; print(type(file).__name__)"
    assert run(script) == "NodeType"


def test_importing_a_node_type_loads_no_other_modules() -> None:
    script = (
        "import sys; from statecfg.resources import symlink\n"
        "found = ('statecfg.resources.packages.package', 'hy', 'yaml', 'jinja2', 'paramiko')\n"
        "print([module for module in sys.modules if module in found])"
    )
    assert run(script) == "[]"


def test_importing_statecfg_loads_no_expensive_modules() -> None:
    script = "import sys; before = set(sys.modules); import statecfg; print(sorted(set(sys.modules) - before))"
    loaded = ast.literal_eval(run(script))
    assert "statecfg.remote.graph.names" not in loaded
    assert not {"typing", "dataclasses", "inspect", "re"} & set(loaded)


def test_a_type_checker_finds_wrong_node_type_arguments(tmp_path: Path) -> None:
    text = (
        "from statecfg import secret\n"
        "from statecfg.resources import command, file, package, user\n"
        'file("/x", content="a", requires=[package("nginx")], tags=["a"])\n'
        'file("/x", contnt="a")\n'
        "file(3)\n"
        'token = secret("token", env="TOKEN")\n'
        'file("/y", content=token)\n'
        'user("deploy", password_hash=token)\n'
        'command("login", argv=["login"], env={"TOKEN": token, "NAME": f"{token}"})\n'
    )
    (tmp_path / "play.py").write_text(text)
    cache = ROOT / ".mypy_cache"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", f"--cache-dir={cache}", str(tmp_path / "play.py")],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if "play.py" in line and ": error:" in line]
    assert len(errors) == 2, done.stdout + done.stderr
    assert 'did you mean "content"?' in errors[0] and "play.py:5: error: Argument 1" in errors[1]
