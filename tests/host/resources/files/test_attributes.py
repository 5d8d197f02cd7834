"""Access lists and capabilities mean to the system what they say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from statecfg.remote.machine import attributes
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import RealMachine
from statecfg.resources.files import acls, file_capabilities, xattrs

DAEMON = 1  # the user and group `daemon` in every Debian

TEXTS = {
    "cap_net_raw=ep": "cap_net_raw=ep",
    "cap_net_raw,cap_chown+p": "cap_chown,cap_net_raw=p",
    "cap_checkpoint_restore=eip cap_kill=ei": "cap_kill=ei cap_checkpoint_restore+eip",
    "cap_syslog=i": "cap_syslog=i",
}


def set_acl(path: Path, *entries: str) -> None:
    assert acls.set_acl(str(path), list(entries)).perform(RealMachine())["status"] == "ok"


def opens(path: Path, sign: str) -> bool:
    """Return whether the user `daemon` can open a file for reading (`<`) or writing (`>>`)."""
    file = os.open(path, os.O_PATH)  # so that the directories above it don't matter
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", f": {sign} /proc/self/fd/{file}"], pass_fds=[file], user=DAEMON, group=DAEMON,
            extra_groups=[], check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0 or "Permission denied" in done.stderr, done.stderr
        return done.returncode == 0
    finally:
        os.close(file)


def test_an_entry_grants_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    path.chmod(0o660)
    assert not opens(path, "<")
    set_acl(path, "user:daemon:r--")
    assert (opens(path, "<"), opens(path, ">>")) == (True, False)
    set_acl(path, "group:daemon:rw-")
    assert (opens(path, "<"), opens(path, ">>")) == (True, True)
    set_acl(path)
    assert not opens(path, "<")
    assert (path.stat().st_mode & 0o7777, os.listxattr(path)) == (0o660, [])


def test_new_files_get_default_entries(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir(0o770)
    set_acl(folder, "default:user:daemon:rw-")
    new = folder / "new"
    new.write_text("x")
    assert opens(new, ">>")
    assert not opens(folder, "<")
    set_acl(folder, "default:user:daemon:---")
    other = folder / "other"
    other.write_text("x")
    assert not opens(other, "<")


def test_a_list_keeps_what_its_directory_has_for_others(tmp_path: Path) -> None:
    """An entry that is added to a default list leaves the entries for owner, group and others alone."""
    folder = tmp_path / "d"
    folder.mkdir(0o750)
    set_acl(folder, "default:user:daemon:r--")
    first = os.getxattr(folder, "system.posix_acl_default")
    folder.chmod(0o777)
    set_acl(folder, "default:user:daemon:r--")
    assert os.getxattr(folder, "system.posix_acl_default") == first


@pytest.mark.parametrize("text", TEXTS)
def test_getcap_shows_the_same_capabilities(text: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    assert xattrs.set_capabilities(str(path), text).perform(RealMachine())["status"] == "ok"
    shown = subprocess.run(["/usr/sbin/getcap", path], capture_output=True, text=True, check=True).stdout
    other = tmp_path / "other"
    other.write_text("x")
    subprocess.run(["/usr/sbin/setcap", shown.strip().partition(" ")[2], other], check=True)
    value = os.getxattr(path, attributes.CAPABILITIES)
    assert os.getxattr(other, attributes.CAPABILITIES) == value
    assert file_capabilities.as_text(value) == file_capabilities.normal(TEXTS[text].replace("+", "="))


def test_names_are_those_of_this_system(tmp_path: Path) -> None:
    """setcap knows every name, with the same number."""
    path = tmp_path / "f"
    path.write_text("x")
    for number, name in enumerate(file_capabilities.NAMES):
        subprocess.run(["/usr/sbin/setcap", f"{name}=p", path], check=True)
        assert file_capabilities.parsed(f"{name}=p")[0] == 1 << number
        assert file_capabilities.as_text(os.getxattr(path, attributes.CAPABILITIES)) == f"{name}=p"


def test_a_plan_refuses_what_another_user_may_not_do(tmp_path: Path) -> None:
    """Without root's rights, capabilities and the attributes of other users' files can't change."""
    path = tmp_path / "f"
    path.write_text("x")
    os.chown(path, DAEMON, DAEMON)
    machine = Planned(RealMachine(), root=False)
    machine.turn("test")
    for action in (
        xattrs.set_capabilities(str(path), "cap_net_raw=ep"),
        xattrs.set_xattr(str(path), "user.x", "1"),
        acls.set_acl(str(path), ["user:daemon:r--"]),
    ):
        assert "Operation not permitted; is root needed (-b)?" in action.perform(machine)["reason"]
