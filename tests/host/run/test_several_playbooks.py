"""Several playbooks on one host, and runs of a part of a playbook: none takes what another one manages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.host.run.site import Site
from tests.lab import Host

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
TAKE = "Remove it from one of the two playbooks, or set `take_over: true` here"


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Site:
    made = Site(tmp_path, light_host, place.rpartition("/")[2])
    made.fresh()
    light_host.run(["mkdir", "-p", place])
    return made


def yaml(site: Site, file: str, *nodes: str) -> None:
    """Write a playbook with these nodes in YAML's flow notation."""
    (site.base / file).write_text("hosts: all\nresources:\n" + "".join(f"  - {{{node}}}\n" for node in nodes))


def applied(site: Site, file: str, *nodes: str) -> None:
    """Write a playbook and apply it; nothing is left to do after it."""
    yaml(site, file, *nodes)
    site("apply", file, "--yes")
    site("plan", file, "--detailed-exitcode")


def test_a_selection_purges_nothing_of_the_other_nodes(site: Site, light_host: Host, place: str) -> None:
    nodes = [
        f"directory: {place}, purge: true",
        f"file: {place}/shop, content: s, tags: [shop]",
        f"file: {place}/wiki, content: w",
        f"line_in_file: {place}/lines, line: one, create: true",
    ]
    light_host.write(f"{place}/wiki", "by hand")
    light_host.write(f"{place}/stray", "")
    yaml(site, "site.yml", *nodes)
    site("apply", "site.yml", "--yes", "--tags", "shop")  # nothing was ever applied before
    assert light_host.read(f"{place}/wiki") == "by hand"
    assert not light_host.path(f"{place}/stray").exists()
    site("apply", "site.yml", "--yes")
    site("apply", "site.yml", "--yes", "--tags", "shop")
    assert light_host.read(f"{place}/wiki") == "w" and light_host.path(f"{place}/lines").exists()
    site("plan", "site.yml", "--detailed-exitcode")


def test_purge_leaves_and_names_what_another_playbook_manages(site: Site, light_host: Host, place: str) -> None:
    light_host.run(["mkdir", "-p", f"{place}/real", "/etc/modprobe.d", "/etc/modules-load.d"])
    light_host.run(["ln", "-s", "real", f"{place}/link"])
    app = [
        f"file: {place}/real/job, content: j",
        f"file: {place}/real/dots, content: d, backup: .old",
        f"file: {place}/link/linked, content: l",
        f"directory: {place}/real/deep/er, parents: true",
        f"symlink: {place}/real/symlink, target: job",
        f"ssh_key: {place}/real/key",
        f"kernel_module: {place.rpartition('/')[2]}, blocked: true",
    ]
    light_host.write(f"{place}/real/dots", "before")
    light_host.write(f"{place}/real/stray", "")
    applied(site, "app.yml", *app)
    yaml(site, "base.yml", f"directory: {place}/real, purge: true", "directory: /etc/modprobe.d, purge: true")
    planned = site("plan", "base.yml").out
    assert f"{place}/real/job stays: file:{place}/real/job of {site.name}/app.yml manages it" in planned
    for _ in range(3):
        site("apply", "base.yml", "--yes")
        site("plan", "app.yml", "--detailed-exitcode")
    left = sorted(path.name for path in light_host.path(f"{place}/real").iterdir())
    assert left == ["deep", "dots", "dots.old", "job", "key", "key.pub", "linked", "symlink"]
    yaml(site, "app.yml", "file: /tmp/nothing, absent: true")
    site("apply", "app.yml", "--yes", "--prune")
    site("apply", "base.yml", "--yes")
    assert sorted(path.name for path in light_host.path(f"{place}/real").iterdir()) == []


@pytest.mark.parametrize(
    "theirs, ours",
    [
        ("file: {0}/x, content: theirs", "file: {0}/x, content: ours"),
        ("file: {0}/x, content: theirs", "file: {0}/x, absent: true"),
        ("file: {0}/x, content: theirs", "remove: {0}/x"),
        ("file: {0}/d/x, content: theirs", "remove: {0}/d, recursive: true"),
        ("file: {0}/d/x, content: theirs", "directory: {0}/d, absent: true, recursive: true"),
        ("line_in_file: {0}/x, line: theirs, create: true", "file: {0}/x, content: ours"),
        ("file: {0}/x, content: theirs", "line_in_file: {0}/x, line: ours"),
        ("file: {0}/x, content: theirs", "ini_key: {0}/x, section: a, key: b, value: ours"),
        ("file: {0}/x, content: theirs", "symlink: {0}/x, target: other, replace: true"),
        ("user: p1, groups: [games]", "group: games, members: []"),
        ("group: games, members: [p1]", "user: p1, groups: [audio], exact_groups: true"),
        ("group: games, members: []", "user: p1, groups: [games]"),
        ("line_in_file: {0}/x, line: a=1, create: true", "replace: {0}/x, pattern: a=1, replacement: a=2"),
        ("line_in_file: {0}/x, line: a=1, create: true", "line_in_file: {0}/x, match: ^a=, absent: true"),
        ("block_in_file: {0}/x, block: a=1, create: true", "replace: {0}/x, pattern: a=1, replacement: a=2"),
        ("replace: /etc/hosts, pattern: '0 q$', replacement: '0 r'", "host_entry: 10.9.9.0, names: [q]"),
        ("json_key: {0}/x, key: a.b, value: 1, create: true", "json_key: {0}/x, key: a, value: {{c: 2}}"),
        ("json_key: {0}/x, key: a.b, value: 1, create: true", "json_key: {0}/x, key: a, absent: true"),
        ("group: games, members: [p1]", "user: p1, absent: true"),
        (f"authorized_key: k, user: p1, key: {KEY}", "user: p1, absent: true"),
        ("user: p1, groups: [p2]", "group: p2, absent: true"),
        ("file: {0}/x, content: c, owner: p1", "user: p1, absent: true"),
        ("file: {0}/x, content: c, group: p2", "group: p2, absent: true"),
        ("password_aging: p1, max_days: 90", "user: p1, absent: true"),
    ],
)
def test_another_playbook_s_object_is_not_touched_without_take_over(
    site: Site, light_host: Host, place: str, theirs: str, ours: str
) -> None:
    light_host.run(["mkdir", "-p", f"{place}/d"])
    users = "id p1 || useradd p1; groupadd -f p2; install -d -o p1 /home/p1; gpasswd -M '' games; gpasswd -M '' audio"
    light_host.run(["sh", "-c", users])
    theirs, ours = theirs.format(place), ours.format(place)
    applied(site, "app.yml", theirs)
    yaml(site, "base.yml", ours)
    planned = site("plan", "base.yml", code=None).out
    assert f"of {site.name}/app.yml" in planned and TAKE in planned, planned
    assert "1 failed" in planned
    site("apply", "base.yml", "--yes", code=None)
    site("plan", "app.yml", "--detailed-exitcode")  # still as defined

    yaml(site, "base.yml", f"{ours}, take_over: true")
    assert "takes over " in site("plan", "base.yml").out
    site("apply", "base.yml", "--yes")
    for _ in range(2):
        again = site("apply", "app.yml", "--yes", code=None).out
        # Its directory may be gone, or a link may be in the way.
        assert any(text in again for text in (f"of {site.name}/base.yml", "does not exist", "not a file")), again
        site("plan", "base.yml", "--detailed-exitcode")
    yaml(site, "app.yml", "file: /tmp/nothing, absent: true")
    site("apply", "app.yml", "--yes", "--prune")  # it no longer owns it
    site("plan", "base.yml", "--detailed-exitcode")


def test_equal_definitions_of_two_playbooks_share_an_object(site: Site, light_host: Host, place: str) -> None:
    applied(site, "app.yml", f"file: {place}/x, content: same")
    applied(site, "base.yml", f"file: {place}/x, content: same")
    light_host.write(f"{place}/x", "drifted")
    site("apply", "base.yml", "--yes")
    assert light_host.read(f"{place}/x") == "same"
    yaml(site, "base.yml", f"file: {place}/x, content: other")
    assert f"file:{place}/x of {site.name}/app.yml manages {place}/x" in site("plan", "base.yml", code=None).out


def test_a_record_moves_without_a_change_of_the_host(site: Site, light_host: Host, place: str) -> None:
    light_host.write(f"{place}/x", "first")
    applied(site, "app.yml", f"file: {place}/x, content: same")
    yaml(site, "base.yml", f"file: {place}/x, content: same, take_over: true")
    assert f"takes over file:{place}/x of {site.name}/app.yml" in site("plan", "base.yml").out
    site("apply", "base.yml", "--yes")
    yaml(site, "app.yml", "file: /tmp/nothing, absent: true")
    site("apply", "app.yml", "--yes", "--prune")
    assert light_host.read(f"{place}/x") == "same"
    site("destroy", "base.yml", "--yes")
    assert light_host.read(f"{place}/x") == "first"


def test_a_purge_through_a_link_changes_its_directory(site: Site, light_host: Host, place: str) -> None:
    light_host.write(f"{place}/d/stray", "")
    light_host.run(["ln", "-sfn", "d", f"{place}/l"])
    yaml(site, "site.yml", f"directory: {place}/l, follow: true, purge: true")
    assert "0 to add, 1 to change, 0 to destroy" in site("plan", "site.yml").out
    assert "0 added, 1 changed, 0 destroyed" in site("apply", "site.yml", "--yes").out


def test_purge_with_take_over_removes_what_another_playbook_manages(site: Site, light_host: Host, place: str) -> None:
    applied(site, "app.yml", f"file: {place}/job, content: j")
    yaml(site, "base.yml", f"directory: {place}, purge: true, take_over: true")
    assert f"takes over file:{place}/job of {site.name}/app.yml" in site("plan", "base.yml").out
    site("apply", "base.yml", "--yes")
    assert not light_host.path(f"{place}/job").exists()


def test_a_removed_node_takes_nothing_of_another_playbook(site: Site, light_host: Host, place: str) -> None:
    applied(site, "app.yml", f"directory: {place}/d", f"file: {place}/d/one, content: one")
    applied(site, "base.yml", f"file: {place}/d/two, content: two")
    site("destroy", "app.yml", "--yes")
    assert light_host.read(f"{place}/d/two") == "two"


@pytest.mark.parametrize(
    "theirs, ours",
    [
        ("acl: {0}/x, entries: ['user:games:r']", "file: {0}/x, mode: '0644'"),
        ("file: {0}/x, mode: '0644'", "line_in_file: {0}/x, line: ours"),
        ("line_in_file: {0}/x, line: theirs", "line_in_file: {0}/x, line: ours"),
        ("line_in_file: {0}/x, line: theirs", "file: {0}/x, mode: '0600'"),
        ("directory: {0}", "file: {0}/y, content: ours"),
        ("user: p2", "group: games, members: [root]"),
    ],
)
def test_separate_parts_of_a_thing_are_no_conflict(
    site: Site, light_host: Host, place: str, theirs: str, ours: str
) -> None:
    light_host.write(f"{place}/x", "first\n", mode=0o644)
    applied(site, "app.yml", theirs.format(place))
    applied(site, "base.yml", ours.format(place))


@pytest.mark.parametrize(
    "theirs, ours, drift",
    [
        ("user: p3, groups: [games], shell: /bin/sh", "user: p3, groups: [audio], create_home: false", "userdel p3"),
        ("user: p3, groups: [games]", "user: p3, groups: [audio, games]", "gpasswd -d p3 games"),
        ("directory: {0}/d, mode: '0750'", "directory: {0}/d, owner: games, parents: true", "rmdir {0}/d"),
        ("directory: {0}/d, mode: '0750', purge: true", "directory: {0}/d, mode: '0750'", "chmod 0700 {0}/d"),
        ("file: {0}/x, mode: '0640'", "file: {0}/x, content: ours", "rm -f {0}/x"),
        ("file: {0}/x, content: c, mode: '0640'", "file: {0}/x, content: c, backup: .old", "rm {0}/x"),
    ],
)
def test_definitions_that_want_nothing_different_share_an_object(
    site: Site, light_host: Host, place: str, theirs: str, ours: str, drift: str
) -> None:
    light_host.write(f"{place}/x", "first\n", mode=0o644)
    applied(site, "app.yml", theirs.format(place))
    applied(site, "base.yml", ours.format(place))
    site("plan", "app.yml", "--detailed-exitcode")
    light_host.run(["sh", "-c", drift.format(place)])
    for _ in range(2):
        site("apply", "base.yml", "--yes")
        site("apply", "app.yml", "--yes", code=None)  # a file without content needs the other playbook
    for file in ("base.yml", "app.yml"):
        site("plan", file, "--detailed-exitcode")


@pytest.mark.parametrize(
    "theirs, ours",
    [
        ("directory: {0}/d, mode: '0750'", "directory: {0}/d, mode: '0755'"),
        ("user: p4, shell: /bin/sh", "user: p4, shell: /bin/bash, groups: [games]"),
        ("file: {0}/x, mode: '0640', content: a", "file: {0}/x, content: b"),
    ],
)
def test_attributes_that_contradict_another_playbook_s_fail(site: Site, place: str, theirs: str, ours: str) -> None:
    applied(site, "app.yml", theirs.format(place))
    yaml(site, "base.yml", ours.format(place))
    assert TAKE in site("plan", "base.yml", code=1).out


def test_a_selection_edits_a_file_that_another_node_of_the_playbook_writes(
    site: Site, light_host: Host, place: str
) -> None:
    nodes = [
        f"file: {place}/x, mode: '0600', requires: ['directory:{place}']",
        f"directory: {place}",
        f"line_in_file: {place}/x, line: one, create: true, tags: [edit]",
        f"file: {place}/gone, content: g, provides: gone",
    ]
    yaml(site, "site.yml", *nodes)
    site("apply", "site.yml", "--yes", "--tags", "edit")
    site("apply", "site.yml", "--yes")
    nodes[2] = nodes[2].replace("line: one", "line: two")
    nodes[3] = f"file: {place}/gone, absent: true, tags: [edit]"
    yaml(site, "site.yml", *nodes)
    site("apply", "site.yml", "--yes", "--tags", "edit")
    assert not light_host.path(f"{place}/gone").exists() and "two" in light_host.read(f"{place}/x")


def test_a_removal_says_that_a_directory_stays_with_what_removed_nodes_leave(
    site: Site, light_host: Host, place: str
) -> None:
    applied(
        site,
        "site.yml",
        f"directory: {place}/top",
        f"directory: {place}/top/inner",
        f"command: made, argv: [touch, {place}/top/inner/made], creates: {place}/top/inner/made, "
        f"requires: ['directory:{place}/top/inner']",
        f"directory: {place}/lines",
        f"line_in_file: {place}/lines/x, line: one, create: true",
        f"directory: {place}/gone",
        f"file: {place}/gone/x, content: x",
    )
    light_host.run(["sh", "-c", f"echo two >> {place}/lines/x"])
    left = {
        step["name"]: step.get("leaves")
        for layer in site.report("destroy", "site.yml", "--yes")["removals"]
        for step in layer
    }
    assert left[f"directory:{place}/top/inner"] == [f"{place}/top/inner is not empty (made): it stays"]
    assert left[f"directory:{place}/top"] == [f"{place}/top is not empty (inner): it stays"]
    assert left[f"directory:{place}/lines"] == [f"{place}/lines is not empty (x): it stays"]
    assert not light_host.path(f"{place}/gone").exists()


@pytest.mark.parametrize(
    "ours",
    [
        "directory: {0}/h, purge: true",
        "remove: {0}/h/.ssh, recursive: true",
        "file: {0}/h/.ssh/authorized_keys, content: x",
    ],
)
def test_a_home_directory_is_where_the_host_says(site: Site, light_host: Host, place: str, ours: str) -> None:
    light_host.run(["useradd", "--create-home", "--home-dir", f"{place}/h", "p6"])
    try:
        applied(site, "app.yml", f"authorized_key: k, user: p6, key: {KEY}")
        yaml(site, "base.yml", ours.format(place))
        assert f"authorized_key:k of {site.name}/app.yml manages " in site("plan", "base.yml", code=None).out
        site("apply", "base.yml", "--yes", code=None)
        assert KEY in light_host.read(f"{place}/h/.ssh/authorized_keys")
    finally:
        light_host.run(["userdel", "p6"])


def test_a_mount_hides_nothing_of_another_playbook(site: Site, light_host: Host, place: str) -> None:
    mount = f"mount: {place}/d, source: none, fstype: tmpfs"
    light_host.run(["mkdir", f"{place}/d"])
    try:
        applied(site, "base.yml", mount)
        applied(site, "app.yml", f"file: {place}/d/x, content: c")
        yaml(site, "base.yml", f"mount: {place}/d, absent: true")
        assert f"manages {place}/d/x, and this node unmounts {place}/d" in site("plan", "base.yml", code=None).out
        light_host.run(["umount", f"{place}/d"])
        applied(site, "base.yml", mount)  # the file is not there, so nothing hides it
        light_host.run(["umount", f"{place}/d"])
        site("apply", "app.yml", "--yes")
        yaml(site, "base.yml", mount)
        assert f"manages {place}/d/x, and this node mounts over {place}/d" in site("plan", "base.yml", code=None).out
        yaml(site, "base.yml", f"{mount}, take_over: true")
        site("apply", "base.yml", "--yes")
        site("plan", "base.yml", "--detailed-exitcode")
    finally:
        light_host.run(["umount", f"{place}/d"], check=False)
