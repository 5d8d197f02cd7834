"""Known hosts as OpenSSH's own programs write them."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

from statecfg.transport.known_hosts import HostKey, Verdict, load


def test_host_names_hashed_by_ssh_keygen_are_found(tmp_path: Path) -> None:
    file = tmp_path / "known"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "k")], check=True)
    words = (tmp_path / "k.pub").read_text().split()
    file.write_text(f"Web {words[0]} {words[1]}\n[db]:2222 {words[0]} {words[1]}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    known, shown = load([str(file)]), HostKey(words[0], base64.b64decode(words[1]))
    assert file.read_text().count("|1|") == 2
    assert known.check("web", 22, shown).verdict is Verdict.TRUSTED
    assert known.check("db", 2222, shown).verdict is Verdict.TRUSTED
    assert known.check("db", 22, shown).verdict is Verdict.UNKNOWN


def test_fingerprints_match_those_of_openssh(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "k")], check=True)
    shown = subprocess.run(["ssh-keygen", "-lf", str(tmp_path / "k.pub")], capture_output=True, text=True, check=True)
    words = (tmp_path / "k.pub").read_text().split()
    assert HostKey(words[0], base64.b64decode(words[1])).fingerprint == shown.stdout.split()[1]
