"""The web playbook on a bare host with systemd, run by the real command: plan, apply, second apply, drift."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT, lab
from tests.host.command import reach, statecfg
from tests.host.resources.truth import nodes, steps
from tests.lab import Host

PLAYBOOK = ROOT / "playbooks/web.hy"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, apt_packages: Any) -> Iterator[Host]:
    """Give a booted host without nginx; its only package source contains Debian's nginx."""
    archive = tmp_path_factory.mktemp("nginx")
    apt = ["apt-get", "-qq", "-o", f"Dir::Cache::archives={archive}", "--download-only", "install", "nginx"]
    done = subprocess.run(apt, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"not run on this machine: nginx can't be downloaded: {done.stderr.strip()[-200:]}")
    host = lab.booted_host("bare")
    repository = lab.apt_repository(tmp_path_factory.mktemp("repository") / "apt")
    for package in archive.glob("*.deb"):
        repository.take(package)
    repository.use(host)
    yield host
    host.stop()


@pytest.fixture(scope="module")
def options(bare: Host, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return reach(tmp_path_factory.mktemp("reach"), [bare], web=["bare"])


def of(report: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = report["hosts"]["bare"]
    return found


def test_the_web_playbook_installs_nginx_and_repairs_drift(bare: Host, options: list[str]) -> None:
    shown = statecfg("plan", PLAYBOOK, *options).out
    for text in ("package:nginx", "+     listen 8080;", "user:deploy", "/srv/www/site/index.html", "service:nginx"):
        assert text in shown
    planned = statecfg("plan", PLAYBOOK, *options, "--json", "--detailed-exitcode", code=2).json()
    assert not bare.path("/etc/nginx").exists()
    before = nodes(of(planned))
    assert {node["outcome"] for node in before.values()} == {"changed"}
    applied = statecfg("apply", PLAYBOOK, *options, "--yes", "--json").json()
    after = nodes(of(applied))
    for name, node in before.items():
        assert steps(after[name]) == steps(node)
        assert after[name]["changes"] == node["changes"]
    page = bare.run(["curl", "-fsS", "http://127.0.0.1:8080/"]).stdout
    assert page == bare.read("/srv/www/site/index.html")
    again = statecfg("apply", PLAYBOOK, *options, "--yes", "--json").json()
    assert of(again)["summary"] == {"unchanged": len(before)}
    started = bare.run(["systemctl", "show", "-P", "MainPID", "nginx"]).stdout

    site = bare.read("/etc/nginx/conf.d/site.conf")
    bare.write("/etc/nginx/conf.d/site.conf", site.replace("8080", "9090"))
    drift = statecfg("plan", PLAYBOOK, *options, "--json").json()
    acting = {name: node for name, node in nodes(of(drift)).items() if node["outcome"] != "unchanged"}
    assert set(acting) == {"file:/etc/nginx/conf.d/site.conf", "service:nginx"}
    (content,) = acting["file:/etc/nginx/conf.d/site.conf"]["changes"]
    assert "-    listen 9090;\n+    listen 8080;\n" in content["diff"]
    assert [action["op"] for action in acting["service:nginx"]["actions"]] == ["restart"]
    assert acting["service:nginx"]["triggered_by"] == ["file:/etc/nginx/conf.d/site.conf"]
    statecfg("apply", PLAYBOOK, *options, "--yes")
    assert bare.run(["systemctl", "show", "-P", "MainPID", "nginx"]).stdout != started
    assert of(statecfg("plan", PLAYBOOK, *options, "--json").json())["summary"] == {"unchanged": len(before)}


def test_the_python_web_playbook_matches_the_hy_one(bare: Host, options: list[str]) -> None:
    found = statecfg("plan", ROOT / "playbooks/web.py", *options, "--json").json()
    assert set(of(found)["summary"]) == {"unchanged"}


def test_a_saved_plan_is_refused_after_drift_and_applied_once(bare: Host, options: list[str], tmp_path: Path) -> None:
    saved = tmp_path / "web.plan"
    bare.write("/srv/www/site/index.html", "drifted\n")
    statecfg("plan", PLAYBOOK, *options, "--out", saved)
    assert saved.stat().st_mode & 0o777 == 0o600
    bare.write("/srv/www/site/index.html", "drifted further\n")
    refused = statecfg("apply", saved, "--yes", code=6)
    assert "file:/srv/www/site/index.html" in refused.out + refused.err
    assert bare.read("/srv/www/site/index.html") == "drifted further\n"
    statecfg("plan", PLAYBOOK, *options, "--out", saved)
    statecfg("apply", saved, "--yes")
    assert "drifted" not in bare.read("/srv/www/site/index.html")
    statecfg("apply", saved, "--yes", code=6)


def test_a_saved_plan_is_refused_after_any_playbook_edit(bare: Host, options: list[str], tmp_path: Path) -> None:
    playbook, saved = tmp_path / "moved.yml", tmp_path / "moved.plan"
    playbook.write_text('hosts: bare\nresources:\n  - file: /srv/moved\n    content: "x"\n')
    statecfg("plan", playbook, *options, "--out", saved)
    text = playbook.read_text()
    playbook.write_text("# a comment\n\n" + text)
    assert "≠ playbook moved.yml: has changed" in statecfg("apply", saved, "--project", tmp_path, code=6).err
    playbook.write_text(text)
    statecfg("apply", saved, "--project", tmp_path)
    assert bare.read("/srv/moved") == "x"
