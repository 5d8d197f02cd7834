"""Secrets that age encrypted, for identities of age and of SSH, and with passphrases."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pyrage
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from statecfg.playbook import secret_keys, secrets
from statecfg.playbook.secret_keys import Keys
from statecfg.problems import collecting
from statecfg.problems.positions import SourceLocation
from tests.each import each

VALUE = b"db:\n  password: correct-horse\n"
PASSPHRASE = "open-sesame"
# Encrypted with this passphrase, with the work factor 4 instead of 18: the value, and an identity.
BY_PASSPHRASE = b"""\
-----BEGIN AGE ENCRYPTED FILE-----
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCBtdk5YajB2d2VpNURDd3U5
NEhGYkRnIDQKTDR6MmJKL2ZOWktrMDJUR2FSbktHVmJzUUZzeVdrdkZQTXlLYkdX
WG5SQQotLS0gYzFvZ3hSbUFaNldvaDZmTUwyUlZpWVp0YzhMUGZ6UzZEektvYlFR
bDNtNArSVo6DAuWn3WTn5ywkAH8oa42qLrnblOvxDdwfyegHqOwCbKLgu3rQCJvs
AcODG5vs7bICIvMfs6NeAoBNzA==
-----END AGE ENCRYPTED FILE-----
"""
IDENTITY = b"""\
-----BEGIN AGE ENCRYPTED FILE-----
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCBCZWFUMjQ1eWxNSFc2NXJO
eWNIbW13IDQKV3RFbFdvQkpMcXppQWdkVG4xejcyUTlZMC9Tb3pVYmRHd28wOFIy
UzZkMAotLS0gZzFwOWZaYVVaYlBtdFJzNXpyZ3V5c0M1aWZpcU5abytMUEF5NGlp
ZTdGZwp66lMlSXODGtjeNAvmvRRxeGnqm5Vblqytwh0Qb43f+SXmRjhpPqOp53kz
eGn2jRUzsfZvs+9X06oWUniTVlOSoR7AX/fCgjVjCaOtVgBuVmN05eQr52ws78dw
xuw0me36QKCLWlIOvBNvpw==
-----END AGE ENCRYPTED FILE-----
"""


def ssh_key(passphrase: bytes = b"") -> tuple[bytes, str]:
    """Return a new private key and its public key."""
    key = Ed25519PrivateKey.generate()
    how = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    openssh = serialization.Encoding.OpenSSH
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, how)
    return private, key.public_key().public_bytes(openssh, serialization.PublicFormat.OpenSSH).decode()


@functools.cache
def contents() -> dict[str, bytes]:
    """Return the contents of files with identities and of files that are encrypted for them, by name."""
    text = pyrage.passphrase.decrypt(IDENTITY, PASSPHRASE).decode().strip()
    one, two = pyrage.x25519.Identity.from_str(text), pyrage.x25519.Identity.generate()
    private, public = ssh_key()
    files = {
        "one.txt": f"# created: now\n{one}\n".encode(),
        "two.txt": f"{two}\n".encode(),
        "protected.age": IDENTITY,
        "ssh": private,
        "ssh-locked": ssh_key(PASSPHRASE.encode())[0],
        "nothing": b"# no identity\n",
        "invalid": b"AGE-SECRET-KEY-1QQQ\n",
        "for-one.age": pyrage.encrypt(VALUE, [one.to_public()]),
        "for-one.asc": pyrage.encrypt(VALUE, [one.to_public()], armored=True),
        "for-ssh.age": pyrage.encrypt(VALUE, [pyrage.ssh.Recipient.from_str(public)]),
        "by-passphrase.age": BY_PASSPHRASE,
    }
    return {**files, "cut.age": files["for-one.age"][:-4]}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a directory with the files of `contents`."""
    for name, content in contents().items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    questions: list[str] = []

    def answer(question: str) -> secrets.Secret:
        questions.append(question)
        return secrets.Secret("password", PASSPHRASE)

    monkeypatch.setattr(secret_keys, "_ask", answer)
    return questions


def value(place: Path, file: str, *identities: str) -> str:
    """Return the value of a secret, or the problem."""
    with secret_keys.opening(Keys.of((), identities, place)), collecting() as problems:
        given = {"age": file, "key": "db.password", "name": "it"}
        revealed = secrets.tagged("!secret", given, SourceLocation(str(place / "x.yml"), 1)).reveal()
    return f"{problems[0].detail}; {problems[0].help}" if problems else revealed


@pytest.mark.parametrize(
    ("file", "identities", "questions"),
    [
        ("for-one.age", ["one.txt"], []),
        ("for-one.asc", ["two.txt", "one.txt"], []),
        ("for-ssh.age", ["one.txt", "ssh"], []),
        ("for-one.age", ["protected.age"], ["passphrase of {}/protected.age"]),
        ("by-passphrase.age", [], ["passphrase of {}/by-passphrase.age"]),
    ],
)
def test_an_encrypted_file_opens_with_each_kind_of_key(
    place: Path, asked: list[str], file: str, identities: list[str], questions: list[str]
) -> None:
    assert value(place, file, *identities) == "correct-horse"
    assert asked == [question.format(place) for question in questions]


def test_text_in_armor_is_opened(place: Path) -> None:
    assert value(place, (place / "for-one.asc").read_text(), "one.txt") == "correct-horse"


@each(
    ("file", "identities", "words"),
    [
        ("for-one.age", [], "can't be opened without an identity; name a file"),
        ("for-one.age", ["two.txt"], "the identity does not match"),
        ("for-one.age", ["two.txt", "ssh"], "none of the 2 identities matches"),
        ("cut.age", ["one.txt"], "can't be opened: it is damaged"),
        ("for-one.age", ["nothing"], "nothing has no identity"),
        ("for-one.age", ["invalid"], "invalid has an invalid identity"),
        ("for-one.age", ["gone"], "gone can't be read: No such file"),
        ("for-one.age", ["ssh-locked"], "ssh-locked is an SSH key with a passphrase"),
        ("for-one.age", ["open"], "open can be read by everyone (mode 0644); chmod 0600"),
    ],
)
def test_problem_names_the_cause(place: Path, file: str, identities: list[str], words: str) -> None:
    (place / "open").write_bytes((place / "one.txt").read_bytes())
    (place / "open").chmod(0o644)
    found = value(place, file, *identities)
    assert words in found and "correct-horse" not in found and "AGE-SECRET" not in found


def test_wrong_passphrase_is_reported(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_keys, "_ask", lambda question: secrets.Secret("password", "wrong-one"))
    assert "the passphrase is wrong" in value(place, "by-passphrase.age")
    assert "protected.age can't be opened: the passphrase is wrong" in value(place, "for-one.age", "protected.age")
    monkeypatch.undo()
    monkeypatch.setenv("CI", "1")
    assert "can't ask for the passphrase of" in value(place, "by-passphrase.age")


def test_missing_library_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyrage", None)
    assert "pip install 'statecfg[age]'" in value(place, "for-one.age", "one.txt")
