"""Undo on this machine's files: what others have changed since the apply stays, and the removal says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from statecfg import resources
from statecfg.remote.machine import attributes
from statecfg.remote.machine.real import RealMachine
from tests.host.resources.test_undo import Site

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
BOB = 12345


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def mode(path: Path) -> int:
    """Return the complete mode of a path, with the set-user-id bits."""
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("was", [None, "a\n"])
def test_content_that_others_changed_stays(site: Site, was: str | None) -> None:
    path = site / "f"
    if was is not None:
        path.write_text(was)
    site.apply(resources.file(str(path), content="b\n"))
    path.write_text("c\n")
    assert site.undo() == [f"others have changed the content of {path} (now 2 bytes): it stays"]
    assert path.read_text() == "c\n"


def test_each_attribute_is_compared_alone(site: Site) -> None:
    """The content and the owner come back, a mode that others changed stays."""
    path = site / "f"
    path.write_text("a\n")
    path.chmod(0o600)
    site.apply(resources.file(str(path), content="b\n", mode="0640"))
    path.chmod(0o4604)
    assert site.undo() == [f"the mode of {path} is now 4604: it stays"]
    assert (path.read_text(), mode(path)) == ("a\n", 0o4604)


def test_a_mode_that_the_node_does_not_set_stays(site: Site) -> None:
    path = site / "f"
    path.write_text("a\n")
    site.apply(resources.file(str(path), content="b\n"))
    path.chmod(0o600)
    assert site.undo() == [f"the mode of {path} is now 0600: it stays"]
    assert (path.read_text(), mode(path)) == ("a\n", 0o600)


def test_a_symbolic_mode_counts_as_set_while_it_changes_nothing(site: Site) -> None:
    path, other = site / "f", site / "g"
    for each in (path, other):
        each.write_text("a\n")
        each.chmod(0o644)
    site.apply(*(resources.file(str(each), mode="go=") for each in (path, other)))
    other.chmod(0o660)
    assert site.undo() == [f"the mode of {other} is now 0660: it stays"]
    assert (mode(path), mode(other)) == (0o644, 0o660)


@needs_root
@pytest.mark.parametrize("bits", [0o4755, 0o2755, 0o6711, 0o2644])
@pytest.mark.parametrize("account", ["owner", "group"])
def test_an_owner_or_group_alone_keeps_the_whole_mode(site: Site, bits: int, account: str) -> None:
    """The kernel clears the set-user-id bits and the capabilities. Apply and undo keep them."""
    path, rewritten = site / "tool", site / "rewritten"
    for each in (path, rewritten):
        each.write_text("a\n")
        each.chmod(bits)
    capabilities = bytes.fromhex("0100000200040000" + "00" * 12)  # cap_net_bind_service+ep
    os.setxattr(path, attributes.CAPABILITIES, capabilities)
    site.apply(
        resources.file(str(path), **{account: "daemon"}),
        resources.file(str(rewritten), content="b\n", **{account: "daemon"}),
    )
    field = "st_uid" if account == "owner" else "st_gid"
    for each in (path, rewritten):
        assert (mode(each), getattr(each.stat(), field)) == (bits, 1)
    assert attributes.read(str(path))[attributes.CAPABILITIES] == capabilities
    assert site.undo() == []
    for each in (path, rewritten):
        assert (mode(each), getattr(each.stat(), field)) == (bits, 0)


@needs_root
def test_bits_stay_away_if_the_owner_between_may_have_changed_the_program(site: Site) -> None:
    path = site / "tool"
    path.write_text("a\n")
    path.chmod(0o4755)
    site.apply(resources.file(str(path), owner="daemon"))
    path.write_text("hostile\n")
    path.chmod(0o4755)
    assert site.undo() == [f"{path} does not get its set-user-id bits back: daemon may have changed its content"]
    assert (path.stat().st_uid, mode(path)) == (0, 0o755)


@needs_root
def test_a_group_takes_the_set_group_id_bit_of_an_untrusted_owner(tmp_path: Path) -> None:
    """Otherwise the owner's program would get the rights of the new group. The set-user-id bit stays the owner's."""
    path = tmp_path / "tool"
    path.write_text("a\n")
    os.chown(path, BOB, BOB)
    path.chmod(0o6755)
    assert RealMachine().chown(str(path), group="daemon")["status"] == "ok"
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (BOB, 1, 0o4755)


def test_a_link_that_others_point_elsewhere_stays(site: Site) -> None:
    path = site / "l"
    path.symlink_to("a")
    site.apply(resources.symlink(str(path), target="b"))
    path.unlink()
    path.symlink_to("c")
    assert site.undo() == [f"the target of {path} is now c: it stays"]
    assert os.readlink(path) == "c"


def test_a_directory_keeps_a_mode_that_others_set(site: Site) -> None:
    path = site / "d"
    path.mkdir(mode=0o700)
    site.apply(resources.directory(str(path), mode="0755"))
    path.chmod(0o2770)
    assert site.undo() == [f"the mode of {path} is now 2770: it stays"]
    assert mode(path) == 0o2770


def test_a_json_value_comes_back_as_it_was_written(site: Site) -> None:
    """A parsed value would lose digits, and `1e999` would become `Infinity`, which is not JSON."""
    path = site / "f.json"
    text = '{"limits":{"max":1e999,"rate":0.30000000000000000001}}'
    path.write_text(text)
    site.apply(
        resources.json_key(str(path), key="timeout", value=5, provides="t"),
        resources.json_key(str(path), key="limits", value={"max": 1}, provides="l", requires=["t"]),
    )
    assert path.read_text() == '{"limits":{"max": 1},"timeout":5}'
    assert site.undo() == []
    assert path.read_text() == text


KEPT = [
    ("yaml_key", "a: 0o17 # octal\n", "a: 5 # mine\n", "a: 0o17 # mine\n"),
    ("yaml_key", "a:\n- x\n- 010\n", "a: 5 # mine\n", "a: # mine\n- x\n- 010\n"),
    ("yaml_key", "a: |\n  x\n  y\n", "a: 5 # mine\n", "a: | # mine\n  x\n  y\n"),
    ("toml_key", "a = 0x1F\n", "a = 5 # mine\n", "a = 0x1F # mine\n"),
    ("toml_key", "a = {x = 1e400}\n", "a = {x = 1e400} # mine\n", "a = {x = 1e400} # mine\n"),
]


@pytest.mark.parametrize(("form", "was", "changed", "back"), KEPT)
def test_a_value_of_another_form_comes_back_as_it_was_written(
    site: Site, form: str, was: str, changed: str, back: str
) -> None:
    """Others have added a comment to the line, so only the value is put back."""
    path = site / "f"
    path.write_text(was)
    key = "b" if "{" in was else "a"
    site.apply(getattr(resources, form)(str(path), key=key, value=5))
    if key == "a":
        path.write_text(changed)
    else:
        path.write_text(changed + "b = 5\n")
    assert site.undo() == []
    assert path.read_text() == back
