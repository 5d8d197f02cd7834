"""The page on services shows the same services in three dialects, and the examples work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from statecfg.run import prepare
from tests import ROOT
from tests.host.pages import blocks
from tests.unit.run.test_charms import write

PAGE = ROOT / "docs/services.md"


def said(path: Path) -> list[Any]:
    """Return the content of a playbook, without the places of its parts."""
    work = prepare.playbook(path, prepare.Choice())
    services = [
        (each.service.name, each.hosts, each.charm, each.schema, each.settings, each.secrets, each.timeout)
        for each in work.services
    ]
    layers = [
        (job.host.name, [node["provides"] for layer in job.definition.layers for node in layer]) for job in work.jobs
    ]
    return [services, [each.ends for each in work.relations], layers]


def test_the_examples_in_three_dialects_mean_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("DB_ADMIN", "correct horse")
    tmp_path.chmod(0o755)
    (tmp_path / "inventory.yml").write_text("hosts: [db1, web1, web2]\ngroups: {web: {hosts: [web1, web2]}}\n")
    write(tmp_path / "charms/db/hooks/install")
    write(tmp_path / "charms/web/hooks/install")
    found = {}
    for block in blocks(PAGE):
        kind, _, suffix = block.mark.partition(" ")
        if kind == "services":
            path = write(tmp_path / f"playbooks/site.{suffix}", block.text, 0o644)
            found[suffix] = said(path)
    assert sorted(found) == ["hy", "py", "yml"]
    assert found["yml"] == found["py"] == found["hy"]
    services, relations, layers = found["yml"]
    assert [(name, hosts) for name, hosts, *_ in services] == [("db", ("db1",)), ("web", ("web1", "web2"))]
    assert services[0][4:] == ({"title": "Blog"}, {"admin": "correct horse"}, 300.0)
    assert len(relations) == 1
    assert layers == [("db1", ["directory:/srv/db"]), ("web1", []), ("web2", [])]
