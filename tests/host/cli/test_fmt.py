"""`statecfg fmt` lays out the YAML files of a project."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import ROOT
from tests.host.command import run

UGLY = (
    "hosts:   '@local'\nresources:\n# about it\n- file: /etc/motd   # kept\n  content: |\n      a\n\n\n  mode: '0644'\n"
)
TIDY = (
    "hosts: '@local'\nresources:\n  # about it\n  - file: /etc/motd   # kept\n    content: |\n      a\n\n\n"
    "    mode: '0644'\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "playbooks/parts").mkdir(parents=True)
    (tmp_path / "statecfg.toml").write_text("")
    (tmp_path / "inventory.yml").write_text("hosts:\n    web1:\n")
    (tmp_path / "playbooks/web.yml").write_text(UGLY)
    (tmp_path / "playbooks/parts/one.yaml").write_text("- user:  ann\n")
    (tmp_path / "playbooks/notes.txt").write_text("a:   1\n")
    return tmp_path


def fmt(project: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return run(["fmt", *arguments], project, {**os.environ, "PYTHONPATH": str(ROOT)}, stdin)


def test_fmt_lays_out_all_yaml_files_of_the_project(project: Path) -> None:
    (project / "playbooks/web.yml").chmod(0o640)
    done = fmt(project)
    assert done.returncode == 0, done.stderr
    names = ["playbooks/parts/one.yaml", "playbooks/web.yml", "inventory.yml"]
    assert done.stdout.splitlines() == [f"formatted {name}" for name in names]
    assert (project / "playbooks/web.yml").read_text() == TIDY
    assert (project / "playbooks/web.yml").stat().st_mode & 0o777 == 0o640
    assert (project / "inventory.yml").read_text() == "hosts:\n  web1:\n"
    assert (project / "playbooks/notes.txt").read_text() == "a:   1\n"
    assert sorted(path.name for path in (project / "playbooks").iterdir()) == ["notes.txt", "parts", "web.yml"]
    again = fmt(project)
    assert (again.returncode, again.stdout) == (0, "3 files already formatted\n")


def test_fmt_check_and_diff_write_nothing(project: Path) -> None:
    done = fmt(project, "--check", "--diff", "playbooks/web.yml")
    assert done.returncode == 2
    assert "-hosts:   '@local'\n+hosts: '@local'\n" in done.stdout
    assert done.stdout.endswith("would format playbooks/web.yml\n")
    assert (project / "playbooks/web.yml").read_text() == UGLY
    fmt(project)
    assert fmt(project, "--check").returncode == 0


def test_fmt_reports_all_invalid_files_and_writes_nothing(project: Path) -> None:
    (project / "playbooks/a.yml").write_text("a: [\n")
    (project / "playbooks/b.yml").write_text("a: 1\na: 2\n")
    done = fmt(project)
    assert done.returncode == 5 and "SC0315" in done.stderr and "SC0306" in done.stderr
    assert (project / "playbooks/web.yml").read_text() == UGLY


def test_fmt_follows_links_and_keeps_them(project: Path) -> None:
    (project / "playbooks/link.yml").symlink_to("web.yml")
    assert fmt(project, "playbooks/link.yml").stdout == "formatted playbooks/link.yml\n"
    assert (project / "playbooks/link.yml").is_symlink()
    assert (project / "playbooks/web.yml").read_text() == TIDY


def test_fmt_reads_standard_input(project: Path) -> None:
    done = fmt(project, "-", stdin=UGLY)
    assert (done.returncode, done.stdout) == (0, TIDY)
    assert fmt(project, "-", "--check", stdin=UGLY).returncode == 2
    assert fmt(project, "-", "--check", stdin=TIDY).returncode == 0


def test_fmt_shows_a_missing_line_end(project: Path) -> None:
    (project / "playbooks/web.yml").write_text("hosts: web")
    done = fmt(project, "--check", "--diff", "playbooks/web.yml")
    assert "-hosts: web\n\\ No newline at end of file\n+hosts: web\n" in done.stdout


def test_fmt_leaves_inventories_of_ansible_alone(project: Path) -> None:
    (project / "inventory.yml").write_text("all:\n    vars: {on: yes}\n")
    assert fmt(project).stdout.splitlines() == ["formatted playbooks/parts/one.yaml", "formatted playbooks/web.yml"]


def test_fmt_keeps_new_projects_as_they_are(tmp_path: Path) -> None:
    assert run(["init", "."], tmp_path, {**os.environ, "PYTHONPATH": str(ROOT)}).returncode == 0
    assert fmt(tmp_path, "--check").returncode == 0
