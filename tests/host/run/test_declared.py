"""A plan shows the declared attributes of a node that is known only after another node, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.host.run.site import Site
from tests.lab import Host


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Site:
    return Site(tmp_path, light_host, place.rpartition("/")[2])


def test_unknown_nodes_show_what_they_declare(site: Site, place: str) -> None:
    (site.base / "site.yml").write_text(
        "hosts: all\nvars:\n  word: !secret {env: WORD}\nresources:\n"
        "  - {command: make, argv: ['true']}\n"
        f"  - {{line_in_file: {place}-a, line: port 22, match: ^port, create: true, requires: ['command:make']}}\n"
        f"  - {{line_in_file: {place}-b, line: 'word {{{{ word }}}}', create: true, requires: ['command:make']}}\n"
    )
    (site.base / "plan.md").write_text("")
    ran = site("plan", "site.yml", "--markdown-into", "plan.md", "--out", "site.plan", WORD="correct-horse")
    assert "known after command:make" in ran.out
    assert "      = create: true, line: port 22, match: ^port\n" in ran.out
    assert "  `create: true, line: port 22, match: ^port" in (site.base / "plan.md").read_text()
    shown = [site("show-plan", "site.plan", code=None).out, (site.base / "plan.md").read_text(), ran.out]
    report = site("plan", "site.yml", "--json", WORD="correct-horse")
    assert not any("correct-horse" in text for text in (*shown, report.out, (site.base / "site.plan").read_text()))
    nodes = {node["name"]: node for layer in report.json()["hosts"][site.host.name]["layers"] for node in layer}
    assert nodes[f"line_in_file:{place}-a"]["declared"]["line"] == "port 22"
    assert nodes[f"line_in_file:{place}-b"]["declared"]["line"] == "<secret>"
    site("apply", "site.plan", WORD="correct-horse")
