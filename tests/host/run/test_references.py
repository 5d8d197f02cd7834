"""Merged declarations, nested loops and references on a real host: the plan is what the apply does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.host.run.site import Site, names
from tests.lab import Host

PLAYBOOK = """\
hosts: all
vars:
  sites: [{{name: shop, ports: [80, 81]}}, {{name: blog, ports: [90]}}]
resources:
  - {{directory: {place}, mode: "0755"}}
  - {{directory: {place}, mode: "0755", tags: [base]}}
  - for_each: sites
    as: site
    label: sites
    resources:
      - {{directory: "{place}/{{{{ site.name }}}}", mode: "0755", requires: [tag:base]}}
      - file: "{place}/{{{{ site.name }}}}/{{{{ item }}}}"
        content: "{{{{ loop.outer.index }}}}.{{{{ loop.index }}}}{more}\\n"
        mode: "0644"
        for_each: site.ports
        requires: ["directory:{place}/*"]
  - command: count
    argv: [sh, -c, "find {place}/shop {place}/blog -type f | wc -l >> {place}/count"]
    creates: {place}/count
    effects: {{}}
    restart_on: [loop:sites]
"""


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Site:
    return Site(tmp_path, light_host, place.rpartition("/")[2])


def test_plan_of_references_is_what_apply_does(site: Site, light_host: Host, place: str) -> None:
    def write(more: str = "") -> None:
        (site.base / "site.yml").write_text(PLAYBOOK.format(place=place, more=more))

    write()
    planned = site("plan", "site.yml")
    assert planned.out.endswith("Plan: 6 to add, 1 to change, 0 to destroy.\n")
    report = site.report("apply", "site.yml", "--yes")
    assert [names([layer]) for layer in report["layers"]] == [
        [f"directory:{place}"],
        [f"directory:{place}/blog", f"directory:{place}/shop"],
        [f"file:{place}/blog/90", f"file:{place}/shop/80", f"file:{place}/shop/81"],
        ["command:count"],
    ]
    assert light_host.read(f"{place}/shop/81") == "1.2\n" and light_host.read(f"{place}/blog/90") == "2.1\n"
    assert light_host.read(f"{place}/count") == "3\n"
    assert site("plan", "site.yml", "--detailed-exitcode").out.endswith("Plan: 0 to add, 0 to change, 0 to destroy.\n")

    write(more=" changed")  # the loop triggers the command
    assert "↳ because" in site("plan", "site.yml", "--detailed-exitcode", code=2).out
    site("apply", "site.yml", "--yes")
    assert light_host.read(f"{place}/count") == "3\n3\n"
    light_host.run(["rm", f"{place}/shop/80"])
    assert site("plan", "site.yml").out.endswith("Plan: 1 to add, 1 to change, 0 to destroy.\n")
    site("destroy", "site.yml", "--yes")
    assert not light_host.path(f"{place}/shop").exists()
