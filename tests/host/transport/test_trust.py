"""Host keys, login keys and the algorithms that we offer."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.transport import AuthenticationFailed, HostKeyRejected, SshSettings, Target, TransportError, connect
from tests.host.transport.sshd import Sshd, make_key, running_sshd, talk
from tests.lab import processes


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("ssh"), kinds=("ed25519", "ecdsa", "rsa")) as sshd:
        yield sshd


def test_an_unknown_host_key_is_refused_before_login(server: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "none"
    seen = server.log()
    with pytest.raises(HostKeyRejected) as caught:
        talk(server.target(), server.settings(known_hosts=(str(file),)))
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", f"{server.root}/host_ed25519.pub"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    text = str(caught.value)
    assert f"ssh-ed25519 {fingerprint}" in text
    assert f"ssh-keyscan -p {server.port} 127.0.0.1 >> {file}" in text
    assert "Accepted" not in server.log()[len(seen) :]
    assert not file.exists()


def test_a_changed_host_key_is_refused_showing_both_keys(server: Sshd, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other").with_suffix(".pub").read_text().split()
    file = tmp_path / "known"
    file.write_text(f"# a comment\n[127.0.0.1]:{server.port} {other[0]} {other[1]}\n")
    with pytest.raises(HostKeyRejected, match="CHANGED") as caught:
        talk(server.target(), server.settings(known_hosts=(str(file),), accept_new=True))
    assert str(caught.value).count("SHA256:") == 2
    assert f"{file}:2" in str(caught.value)
    assert len(file.read_text().splitlines()) == 2


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_the_client_requests_the_known_type_of_host_key(server: Sshd, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "known"
    file.write_text(f"[127.0.0.1]:{server.port} {server.public_key(kind)}\n")
    peer = talk(server.target(), server.settings(known_hosts=(str(file),)))
    assert kind in peer


def test_hashed_host_names_are_accepted(server: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text(server.known_hosts.read_text())
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert file.read_text().startswith("|1|")
    talk(server.target(), server.settings(known_hosts=(str(file),)))


@pytest.mark.parametrize(("marker", "text"), [("@revoked", "revoked"), ("@cert-authority", "certificate authority")])
def test_revoked_and_certificate_authority_keys_are_refused(
    server: Sshd, tmp_path: Path, marker: str, text: str
) -> None:
    file = tmp_path / "known"
    place = f"[127.0.0.1]:{server.port}"
    good = f"{place} {server.public_key()}\n" if marker == "@revoked" else ""
    file.write_text(f"{good}{marker}  {place} {server.public_key()}\n")
    with pytest.raises(HostKeyRejected, match=text):
        talk(server.target(), server.settings(known_hosts=(str(file),)))


def test_accept_new_adds_the_host_key_once(server: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "new" / "known"
    settings = server.settings(known_hosts=(str(file),), accept_new=True)
    talk(server.target(), settings)
    talk(server.target(), settings)
    assert file.read_text() == f"[127.0.0.1]:{server.port} {server.public_key()}\n"
    # OpenSSH can read the file.
    found = subprocess.run(
        ["ssh-keygen", "-F", f"[127.0.0.1]:{server.port}", "-f", str(file)], capture_output=True, check=False
    )
    assert found.returncode == 0


def test_only_modern_algorithms_are_offered() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    target = Target("x", "127.0.0.1", listener.getsockname()[1], "u")
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            connect(target, SshSettings(ssh_config="none", known_hosts=(), use_agent=False, default_keys=False))
        except TransportError as error:
            errors.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    with listener, listener.accept()[0] as sock:
        sock.sendall(b"SSH-2.0-test\r\n")
        data = b""
        while len(data) < 400 or b"\n" not in data:
            data += sock.recv(65536)
        packet = data.partition(b"\n")[2]
        offered = _name_lists(packet[6 + 16 :])
    thread.join(10)
    kex, host_keys, ciphers, macs = offered[0], offered[1], offered[2] + offered[3], offered[4] + offered[5]
    assert set(kex) <= {
        "mlkem768x25519-sha256",
        "curve25519-sha256@libssh.org",
        "ecdh-sha2-nistp256",
        "diffie-hellman-group16-sha512",
        "kex-strict-c-v00@openssh.com",
        "ext-info-c",
    }
    assert "kex-strict-c-v00@openssh.com" in kex
    assert not [k for k in host_keys if "cert" in k or k in ("ssh-rsa", "ssh-dss")]
    assert not [c for c in ciphers if "cbc" in c or "3des" in c or "arcfour" in c]
    assert all(m.startswith("hmac-sha2-") for m in macs)
    assert len(errors) == 1


def _name_lists(data: bytes) -> list[list[str]]:
    lists = []
    for _ in range(8):
        size = int.from_bytes(data[:4], "big")
        lists.append(data[4 : 4 + size].decode().split(","))
        data = data[4 + size :]
    return lists


def test_a_rejected_login_key_is_named(server: Sshd, tmp_path: Path) -> None:
    wrong = make_key(tmp_path / "wrong")
    with pytest.raises(AuthenticationFailed, match=str(wrong)):
        talk(server.target(identity_files=(str(wrong),)), server.settings())


def test_a_missing_login_key_is_named(server: Sshd, tmp_path: Path) -> None:
    with pytest.raises(AuthenticationFailed, match=f"checked: {tmp_path}/no"):
        talk(server.target(identity_files=(f"{tmp_path}/no",)), server.settings())


def test_an_invalid_login_key_file_is_named(server: Sshd, tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("junk\n")
    (tmp_path / "junk").chmod(0o600)
    with pytest.raises(AuthenticationFailed, match="junk: it is not a usable private key"):
        talk(server.target(identity_files=(f"{tmp_path}/junk",)), server.settings())


def test_login_tries_the_keys_after_a_wrong_one(server: Sshd, tmp_path: Path) -> None:
    wrong = make_key(tmp_path / "wrong")
    talk(server.target(identity_files=(str(wrong), str(server.key))), server.settings())


@contextlib.contextmanager
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        processes.wait_until(path.exists, 20, "the agent to listen")
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        yield
    finally:
        process.kill()
        process.wait()


def test_an_encrypted_key_works_only_with_an_agent(
    server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked"
    locked.write_bytes(server.key.read_bytes())
    locked.chmod(0o600)
    (tmp_path / "locked.pub").write_bytes(server.key.with_suffix(".pub").read_bytes())
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(locked)], check=True)
    target = server.target(identity_files=(str(locked),))
    with pytest.raises(AuthenticationFailed, match=f"{locked} is encrypted and no agent has it .run: ssh-add"):
        talk(target, server.settings(use_agent=True))
    with agent(tmp_path, monkeypatch):
        subprocess.run(["ssh-add", "-q", str(server.key)], check=True, stderr=subprocess.DEVNULL)
        talk(target, server.settings(use_agent=True))
        talk(server.target(identity_files=()), server.settings(use_agent=True))
        with pytest.raises(AuthenticationFailed):
            talk(target, server.settings(use_agent=False))


def test_a_server_that_accepts_only_passwords_is_reported(tmp_path: Path) -> None:
    with (
        running_sshd(tmp_path / "a", "PubkeyAuthentication no", "PasswordAuthentication yes") as server,
        pytest.raises(AuthenticationFailed, match=r"does not accept keys for .*, only: password"),
    ):
        talk(server.target(), server.settings())
