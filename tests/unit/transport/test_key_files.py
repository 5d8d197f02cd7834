"""Private key files are checked once, not at each login."""

from __future__ import annotations

import builtins
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from statecfg.transport import SshSettings, Target
from statecfg.transport.identities import Identities
from statecfg.transport.key_files import unusable
from statecfg.transport.route import Hop, route

Opened = Counter[str]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Count how often each file is opened."""
    counts, real = Counter[str](), builtins.open

    def counted(file: Any, *arguments: Any, **named: Any) -> Any:
        counts[str(file)] += 1
        return real(file, *arguments, **named)

    monkeypatch.setattr(builtins, "open", counted)
    return counts


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n")
    path.chmod(0o600)
    return path


def hop(number: int, key: Path) -> Hop:
    target = Target(f"h{number}", f"192.0.2.{number}", user="me", identity_files=(str(key),))
    return route(target, SshSettings(ssh_config="none", use_agent=False))[-1]


def test_a_key_file_is_read_once_for_the_logins_of_all_hosts(key: Path, opened: Opened) -> None:
    for number in range(1, 20):
        identities = Identities[str](hop(number, key), lambda path: (path.encode(), path), list)
        assert list(identities.offers()) == [str(key)]
    assert opened[str(key)] == 1


def test_a_key_file_that_changes_is_checked_again(key: Path, tmp_path: Path, opened: Opened) -> None:
    assert unusable(str(key)) == unusable(str(key)) == ""
    key.chmod(0o644)
    assert "mode 0644" in unusable(str(key))
    new = tmp_path / "new"
    new.write_text("PuTTY-User-Key-File-3: ssh-ed25519\n")
    new.replace(key)
    assert "PuTTY key" in unusable(str(key)) and "PuTTY key" in unusable(str(key))
    assert opened[str(key)] == 3


def test_a_missing_key_file_is_an_error_until_it_exists(key: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        unusable(str(tmp_path / "later"))
    key.rename(tmp_path / "later")
    assert unusable(str(tmp_path / "later")) == ""
