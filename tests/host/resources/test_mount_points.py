"""Files on which something is mounted, mounts inside removed trees, and links that other programs make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.run.site import Site
from tests.lab import Host


@pytest.fixture
def site(tmp_path: Path, light_host: Host) -> Iterator[Site]:
    light_host.run(["mkdir", "-p", "/srv/m/tree/data", "/srv/m/tree/other"])
    light_host.write("/srv/m/source", "old\n")
    light_host.write("/srv/m/bound", "below\n")
    light_host.write("/srv/m/tree/first", "1\n")
    light_host.run(["mount", "--bind", "/srv/m/source", "/srv/m/bound"])
    light_host.run(["mount", "-t", "tmpfs", "tmpfs", "/srv/m/tree/data"])
    light_host.write("/srv/m/tree/data/kept", "k\n")
    yield Site(tmp_path, light_host, "site")
    for path in ("/srv/m/tree/data", "/srv/m/bound", "/srv/m/ro"):
        light_host.run(["umount", path], check=False)
    light_host.run(["rm", "-rf", "/srv/m", "/var/lib/statecfg"])


def report(site: Site, verb: str, *lines: str, code: int | None = 0, more: tuple[str, ...] = ()) -> dict[str, Any]:
    """Write a playbook, run the command and return the nodes of its report by name."""
    (site.base / "site.yml").write_text("hosts: all\nresources:\n" + "".join(f"  - {line}\n" for line in lines))
    found = site.report(verb, "site.yml", *(["--yes"] if verb == "apply" else []), *more, code=code)
    return {node["name"]: node for layer in (*found["removals"], *found["layers"]) for node in layer}


def test_a_mounted_file_is_written_in_place_and_restored(site: Site, light_host: Host) -> None:
    node = "{file: /srv/m/bound, content: \"new\\n\", mode: '0600'}"
    (planned,) = report(site, "plan", node).values()
    assert planned["outcome"] == "changed"
    assert planned["reason"] == "/srv/m/bound is a mount point: the apply writes into it, so the change is not atomic"
    (applied,) = report(site, "apply", node).values()
    assert applied["outcome"] == "changed"
    assert light_host.read("/srv/m/source") == "new\n"
    assert light_host.run(["stat", "-c", "%a", "/srv/m/bound"]).stdout == "600\n"
    assert report(site, "plan", node)["file:/srv/m/bound"]["outcome"] == "unchanged"
    assert not [name for name in light_host.run(["ls", "-A", "/srv/m"]).stdout.split() if name.startswith(".")]
    lines = "{line_in_file: /srv/m/bound, line: more}", "{block_in_file: /srv/m/bound, block: b}"
    assert {one["outcome"] for one in report(site, "apply", *lines, more=("--prune",)).values()} == {"changed"}
    assert light_host.read("/srv/m/source").startswith("old\n")
    site("destroy", "site.yml", "--yes")
    assert light_host.read("/srv/m/source") == "old\n"


def test_a_mounted_file_is_kept_as_a_copy(site: Site, light_host: Host) -> None:
    report(site, "apply", '{file: /srv/m/bound, content: "new\\n", backup: .old}')
    assert light_host.read("/srv/m/source") == "new\n"
    assert light_host.read("/srv/m/bound.old") == "old\n"


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("{remove: /srv/m/bound}", "/srv/m/bound is a mount point"),
        ("{symlink: /srv/m/bound, target: x, replace: true}", "/srv/m/bound is a mount point"),
        ("{file: /srv/m/bound, absent: true}", "/srv/m/bound is a mount point"),
        ("{remove: /srv/m/tree, recursive: true}", "a file system is mounted on /srv/m/tree/data"),
        ("{directory: /srv/m/tree, absent: true, recursive: true}", "a file system is mounted on /srv/m/tree/data"),
        ("{directory: /srv/m/tree, purge: true}", "/srv/m/tree/data is a mount point"),
    ],
)
def test_a_mount_in_the_way_of_a_removal_fails_in_the_plan(site: Site, light_host: Host, node: str, why: str) -> None:
    (planned,) = report(site, "plan", node, code=1).values()
    assert planned["outcome"] == "failed", planned
    assert why in planned["reason"]
    report(site, "apply", node, code=1, more=("--keep-going",))
    assert light_host.read("/srv/m/tree/first") == "1\n"
    assert light_host.path("/srv/m/tree/other").exists()
    assert light_host.read("/srv/m/tree/data/kept") == "k\n"


def test_a_tree_can_be_removed_after_the_unmount_of_the_same_run(site: Site, light_host: Host) -> None:
    nodes = (
        "{mount: /srv/m/tree/data, absent: true}",
        ("{remove: /srv/m/tree, recursive: true, requires: ['mount:/srv/m/tree/data']}"),
    )
    planned = report(site, "plan", *nodes)
    assert planned["remove:/srv/m/tree"]["outcome"] in ("changed", "unknown")
    report(site, "apply", *nodes)
    assert not light_host.path("/srv/m/tree").exists()


def test_a_read_only_file_system_fails_in_the_plan(site: Site, light_host: Host) -> None:
    light_host.run(["mkdir", "/srv/m/ro"])
    light_host.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", "/srv/m/ro"])
    (planned,) = report(site, "plan", "{file: /srv/m/ro/x, content: text}", code=1).values()
    assert "Read-only file system: /srv/m/ro is mounted read-only" in planned["reason"]


def test_a_link_that_a_command_makes_is_known_after_it(site: Site, light_host: Host) -> None:
    command = "{command: make, argv: [ln, -s, target, /srv/m/link], creates: /srv/m/link}"
    node = "{file: /srv/m/link, content: \"text\\n\", requires: ['command:make']%s}"
    planned = report(site, "plan", command, node % "")["file:/srv/m/link"]
    assert (planned["outcome"], planned["known_after"]) == ("changed", "command:make")
    applied = report(site, "apply", command, node % "", code=1)["file:/srv/m/link"]
    assert "replace: true replaces the link" in applied["reason"]
    light_host.run(["rm", "/srv/m/link"])
    planned = report(site, "plan", command, node % ", replace: true")["file:/srv/m/link"]
    assert "known_after" not in planned
    applied = report(site, "apply", command, node % ", replace: true")["file:/srv/m/link"]
    assert applied["outcome"] == "changed"
    assert light_host.read("/srv/m/link") == "text\n"
    assert not light_host.path("/srv/m/link").is_symlink()
    assert report(site, "plan", command, node % ", replace: true")["file:/srv/m/link"]["outcome"] == "unchanged"


def test_a_replaced_link_comes_back(site: Site, light_host: Host) -> None:
    light_host.run(["ln", "-s", "target", "/srv/m/link"])
    report(site, "apply", '{file: /srv/m/link, content: "text\\n", replace: true}')
    site("destroy", "site.yml", "--yes")
    assert light_host.run(["readlink", "/srv/m/link"]).stdout == "target\n"


@pytest.mark.parametrize("end", ["\r", "\v", "\x85", "\u2028"])
def test_a_mount_point_with_the_end_of_a_line_in_its_name_stops_no_run(site: Site, light_host: Host, end: str) -> None:
    """Users make mount points with FUSE. The kernel escapes line feeds in their names, and no other ends of lines."""
    path = f"/srv/m/a{end}b - c"
    light_host.run(["mkdir", path])
    light_host.run(["mount", "-t", "tmpfs", "tmpfs", path])
    try:
        node = "{file: /srv/m/first, content: \"{{ host.facts.mounts | map(attribute='path') | join('|') }}\"}"
        found = report(site, "plan", node, "{mount: /srv/m/tree/other, source: none, fstype: tmpfs}")
    finally:
        light_host.run(["umount", path])
    assert {one["outcome"] for one in found.values()} == {"changed"}
