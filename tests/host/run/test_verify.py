"""Drift on a real host: changes on the host, changes in the definition, and hosts that can't be verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.host.run.site import Site, names
from tests.host.run.test_prune import listed, text
from tests.lab import Host


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Site:
    return Site(tmp_path, light_host, place.rpartition("/")[2])


def drift(report: dict[str, Any]) -> dict[str, list[str]]:
    """Return the drift of each node that has drifted."""
    layers = (*report["removals"], *report["layers"], *report["left"])
    return {node["name"].rpartition("/")[2]: node["drift"] for layer in layers for node in layer if node.get("drift")}


def test_verify_separates_host_changes_from_definition_changes(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "kept", "host", "defined", "both", "left"))
    site("apply", "site.py", "--yes")
    assert "  ✓ No drift: 6 resources as defined.\n" in site("verify", "site.py").out
    for name in ("host", "both"):
        light_host.write(f"{place}/{name}", "by hand\n")
    others = [
        f"file('{place}/{name}', content='new\\n', requires=['directory:{place}'])" for name in ("defined", "both")
    ]
    site.play(
        *text(place, "kept", "host"), *others, f"file('{place}/added', content='', requires=['directory:{place}'])"
    )
    before = {name: light_host.read(f"{place}/{name}") for name in listed(light_host, place)}
    report = site.report("verify", "site.py", code=2)
    assert drift(report) == {
        "host": ["host"], "defined": ["definition"], "both": ["host", "definition"], "left": ["definition"],
        "added": ["definition"],
    }  # fmt: skip
    assert names(report["left"]) == [f"file:{place}/left"]
    shown = site("verify", "site.py", code=2).out
    first, _, second = shown.partition("  The definition changed:\n")
    assert "  The host changed:\n" in first
    assert f"  ~ file:{place}/host  write" in first
    assert f"  ~ file:{place}/both  write" in first
    assert "      ↳ the definition changed as well\n" in first
    assert f"  ~ file:{place}/defined  write" in second
    assert f"  + file:{place}/added  write" in second
    assert f"  - file:{place}/left  left the definition, stays" in second
    assert shown.endswith("Drift: 2 changed on the host, 3 in the definition, 2 as defined.\n")
    assert {name: light_host.read(f"{place}/{name}") for name in listed(light_host, place)} == before


def test_verify_reports_a_resource_that_left_the_definition_as_drift(site: Site, place: str) -> None:
    site.play(*text(place, "a", "b"))
    site("apply", "site.py", "--yes")
    site.play(*text(place, "b"))
    assert site("plan", "site.py", "--detailed-exitcode").code == 0
    assert site("verify", "site.py", code=2).out.endswith(
        "Drift: 0 changed on the host, 1 in the definition, 2 as defined.\n"
    )
    site.play(*text(place, "b"), head=", prune=True")
    assert "1 in the definition" in site("verify", "site.py", code=2).out
    site("prune", "site.py", "--yes")
    site("verify", "site.py")


def test_verify_does_not_report_failures_as_drift(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "a"))
    site("apply", "site.py", "--yes")
    light_host.run(["rm", "-rf", place])
    light_host.write(place, "a file where the directory was\n")
    failed = site("verify", "site.py", code=1)
    assert "failed" in failed.out
    (site.base / "inventory.yml").write_text("hosts:\n  gone: {address: 127.0.0.1, port: 9, user: root}\n")
    gone = site("verify", "site.py", code=4)
    assert "1 of 1 host could not be verified: gone\n" in gone.out


def test_verify_reports_real_drift_after_a_failed_apply(site: Site, light_host: Host, place: str) -> None:
    broken = f"command('broken', argv=['false'], requires=['file:{place}/a'])"
    site.play(*text(place, "a"), broken)
    site("apply", "site.py", "--yes", code=1)
    light_host.write(f"{place}/a", "by hand\n")
    report = site.report("verify", "site.py", code=2)
    assert drift(report)["a"] == ["host"]
