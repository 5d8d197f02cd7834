"""What the guards of firewalls and PAM restore."""

from __future__ import annotations

from pathlib import Path

from statecfg.remote.machine.real import RealMachine
from statecfg.resources.network import firewall_guard


def test_restoring_brings_old_files_back_and_removes_new_ones(tmp_path: Path) -> None:
    plain, new = tmp_path / "plain", tmp_path / "new"
    plain.write_text("before")
    restore = firewall_guard.files(RealMachine(), [str(plain), str(new)])
    plain.write_text("after")
    new.write_text("after")
    assert restore() == []
    assert plain.read_text() == "before" and not new.exists()


def test_links_stay_and_the_files_to_which_they_lead_are_restored(tmp_path: Path) -> None:
    """On some systems, files in /etc/pam.d are links. Without them, PAM refuses every user."""
    link, file, moved = tmp_path / "link", tmp_path / "file", tmp_path / "moved"
    file.write_text("before")
    link.symlink_to("file")
    moved.symlink_to("file")
    restore = firewall_guard.files(RealMachine(), [str(link), str(moved)])
    file.write_text("after")
    moved.unlink()
    moved.write_text("a file in place of the link")
    assert restore() == []
    assert link.is_symlink() and moved.is_symlink()
    assert file.read_text() == link.read_text() == moved.read_text() == "before"
