"""Which groups may write what statecfg executes: only a group that has one user."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from statecfg.playbook import trust
from tests.each import each

ME, OTHER, MY_GROUP, SHARED = 4001, 4002, 5001, 5002


def user(name: str, id: int, group: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", id, group, "", f"/home/{name}", "/bin/sh"))


def users(monkeypatch: pytest.MonkeyPatch, *, other_group: int = SHARED, members: tuple[str, ...] = ()) -> None:
    """Let the system have the users `me` and `other`, the group `mine` (of `me`) and the group `shared`."""
    entries = {ME: user("me", ME, MY_GROUP), OTHER: user("other", OTHER, other_group)}
    groups = {
        MY_GROUP: grp.struct_group(("mine", "x", MY_GROUP, list(members))),
        SHARED: grp.struct_group(("shared", "x", SHARED, ["me"])),
    }
    monkeypatch.setattr(pwd, "getpwuid", entries.__getitem__)
    monkeypatch.setattr(pwd, "getpwall", lambda: list(entries.values()))
    monkeypatch.setattr(grp, "getgrgid", groups.__getitem__)
    # Call the rule itself: its cache would keep these answers for other tests.
    monkeypatch.setattr(trust, "private", trust.private.__wrapped__)


@pytest.mark.parametrize("members", [(), ("me",)], ids=["no members", "the owner"])
def test_the_owners_primary_group_is_private(monkeypatch: pytest.MonkeyPatch, members: tuple[str, ...]) -> None:
    users(monkeypatch, members=members)
    assert trust.private(ME, MY_GROUP)


def test_a_group_with_another_member_is_not_private(monkeypatch: pytest.MonkeyPatch) -> None:
    users(monkeypatch, members=("me", "other"))
    assert not trust.private(ME, MY_GROUP)


def test_a_group_that_is_primary_for_another_user_is_not_private(monkeypatch: pytest.MonkeyPatch) -> None:
    users(monkeypatch, other_group=MY_GROUP)
    assert not trust.private(ME, MY_GROUP)


@each("ids", [(ME, SHARED), (OTHER, MY_GROUP), (ME, 1), (1, MY_GROUP)])
def test_a_group_other_than_the_owners_primary_one_is_not_private(
    monkeypatch: pytest.MonkeyPatch, ids: tuple[int, int]
) -> None:
    users(monkeypatch)
    assert not trust.private(*ids)


@each("private", [True, False])
@each("mode", [0o775, 0o777])
def test_only_a_private_group_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private: bool, mode: int
) -> None:
    group = tmp_path.stat().st_gid
    monkeypatch.setattr(trust, "private", lambda *ids: private and ids == (os.geteuid(), group))
    tmp_path.chmod(mode)
    assert (trust.others_could_change(tmp_path) is None) == (private and mode == 0o775)
