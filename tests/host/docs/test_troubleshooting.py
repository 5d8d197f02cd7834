"""The page on troubleshooting SSH contains the messages that statecfg really shows."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT, lab
from tests.host.command import statecfg
from tests.lab.fixtures import NOT_RUN

PAGE = (ROOT / "docs/troubleshooting-ssh.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.PlainSshd]:
    """Give an sshd on this machine."""
    try:
        host = lab.plain_sshd(tmp_path_factory.mktemp("sshd"))
    except lab.Unavailable as reason:
        pytest.skip(f"{NOT_RUN}{reason}")
    yield host
    host.stop()


def key(path: Path, passphrase: str = "") -> Path:
    """Make a key that no host accepts."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)]
    subprocess.run(argv, check=True, timeout=60)
    return path


def changed(known_hosts: Path, other: Path) -> Path:
    """Write a known_hosts file with a wrong key for each host."""
    _, kind, *_ = known_hosts.read_text().split()
    wrong = other.with_suffix(".pub").read_text().split()[1]
    path = other.with_name("changed")
    path.write_text("".join(f"{line.split()[0]} {kind} {wrong}\n" for line in known_hosts.read_text().splitlines()))
    return path


CASES = (
    ("cannot look up", "address: nowhere.invalid", ""),
    ("cannot connect", "address: 127.0.0.1, port: 1", ""),
    ("its host key is not known", "", "UserKnownHostsFile /dev/null"),
    ("its host key has CHANGED", "", "UserKnownHostsFile {changed}"),
    ("no usable key to log in", "key: {locked}", ""),
    ("it rejected all keys", "key: {other}", ""),
    ("ssh_config sets ProxyCommand", "", "ProxyCommand nc %h %p"),
    ("ProxyJump is circular", "jump: {sshd.user}@{sshd.address}:{sshd.port}", ""),
    ("no Python 3.8 or newer found on this host", "python: /nowhere/python3", ""),
)


@pytest.mark.parametrize(("message", "settings", "config"), CASES, ids=[case[0] for case in CASES])
def test_the_ssh_page_explains_each_message(
    message: str, settings: str, config: str, sshd: lab.PlainSshd, tmp_path: Path
) -> None:
    files = {"other": key(tmp_path / "other"), "locked": key(tmp_path / "locked", "passphrase")}
    files["changed"] = changed(Path(sshd.known_hosts), files["other"])
    given = {"address": sshd.address, "port": sshd.port, "user": sshd.user, "key": sshd.identity}
    given.update(pair.split(": ") for pair in settings.format(**files, sshd=sshd).split(", ") if pair)
    values = ", ".join(f"{name}: {value}" for name, value in given.items())
    (tmp_path / "inventory.yml").write_text(f"hosts:\n  web1: {{{values}}}\n")
    known = "" if "KnownHosts" in config else f"UserKnownHostsFile {sshd.known_hosts}\n"
    (tmp_path / "config").write_text(
        f"{config.format(**files)}\n{known}GlobalKnownHostsFile none\nIdentityAgent none\n"
    )
    state = {"STATECFG_STATE_DIR": str(tmp_path / "state"), "HOME": os.environ["HOME"]}
    ran = statecfg("facts", "web1", "--ssh-config", "config", cwd=tmp_path, code=4, **state)
    assert message in ran.out
    assert message in PAGE


def test_the_ssh_page_lists_every_become_method() -> None:
    from statecfg.transport.become import METHODS

    section = PAGE.partition("## become")[2].partition("\n## ")[0]
    assert all(re.search(rf"^\| `[^`]*\b{method}\b", section, re.M) for method in METHODS)
