"""Becoming another user on a real host with su of util-linux, which prompts on stderr and reads stdin."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from statecfg.transport import LOCAL, BecomeFailed, HostConnection, SshSettings, Stream, Target, become, connect
from statecfg.transport.become import Become, open_become
from tests.host.transport.test_become import GREETER, login, read_until
from tests.lab import Host, add_user

ROOTS, BOBS = "root's horse", "bob's battery"


@pytest.fixture(scope="module")
def host(light_host: Host) -> Host:
    add_user(light_host, "ann", password="ann's own")
    add_user(light_host, "bob", password=BOBS)
    add_user(light_host, "shut", password=BOBS)
    add_user(light_host, "stale", password=BOBS)
    add_user(light_host, "gone", password=BOBS)
    light_host.run(["chpasswd"], stdin=f"root:{ROOTS}\n")
    light_host.run(["usermod", "--shell", "/usr/sbin/nologin", "shut"])
    light_host.run(["chage", "--lastday", "0", "stale"])
    light_host.run(["chage", "--expiredate", "0", "gone"])
    return light_host


@pytest.fixture
def ann(host: Host) -> Iterator[HostConnection]:
    connection = login(host, "ann")
    yield connection
    connection.close()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Give all data that is written to the host, in order."""
    from statecfg.transport.ssh_stream import SshStream

    pieces: list[bytes] = []
    write = SshStream.write

    def noted(stream: SshStream, data: bytes) -> None:
        pieces.append(data)
        write(stream, data)

    monkeypatch.setattr(SshStream, "write", noted)
    return pieces


@pytest.mark.parametrize(("user", "password"), [("root", ROOTS), ("bob", BOBS)])
def test_su_gets_the_password_at_its_prompt(ann: HostConnection, user: str, password: str, sent: list[bytes]) -> None:
    stream = open_become(ann, GREETER, Become("su", user, password), b"greeting")
    stream.write(b"data\n")
    assert read_until(stream, b"data\n") == f"greeting\n{user}\ndata\n".encode()
    assert sent == [f"{password}\n".encode(), b"data\n"]
    assert stream.stderr() == b""


def test_su_asks_in_english_whatever_the_logins_locale(host: Host) -> None:
    """The login's locale must not reach su, because only the prompt of the C locale is recognised."""
    host.write("/home/ann/.bashrc", "export LANG=de_DE.UTF-8 LC_MESSAGES=de_DE.UTF-8 LANGUAGE=de\n")
    connection = login(host, "ann")
    try:
        stream = open_become(connection, GREETER, Become("su", "root", ROOTS))
        assert b"\nroot\n" in read_until(stream, b"root\n")
    finally:
        connection.close()
        host.run(["rm", "/home/ann/.bashrc"])


def test_root_can_use_su_without_sending_a_password(host: Host, sent: list[bytes]) -> None:
    connection = login(host, "root")
    stream = open_become(connection, GREETER, Become("su", "shut", BOBS))
    stream.write(b"data\n")
    assert read_until(stream, b"data\n") == b"greeting\nshut\ndata\n"
    assert sent == [b"data\n"]
    connection.close()


def test_su_gets_a_wrong_password_only_once(ann: HostConnection, sent: list[bytes]) -> None:
    begun = time.monotonic()
    with pytest.raises(BecomeFailed, match="su rejected the password"):
        open_become(ann, GREETER, Become("su", password="wrong"))
    assert time.monotonic() - begun < 20
    assert sent == [b"wrong\n"]


def test_a_missing_su_password_is_reported_and_nothing_is_sent(ann: HostConnection, sent: list[bytes]) -> None:
    with pytest.raises(BecomeFailed, match="su asks for a password: pass -K") as caught:
        open_become(ann, GREETER, Become("su"))
    assert "the password of root" in caught.value.hint
    assert sent == []


@pytest.mark.parametrize(
    ("user", "text"),
    [
        ("ghost", "user ghost does not exist"),
        ("shut", "su only starts the shell of shut, which does not run commands"),
        ("gone", "the account gone has expired"),
    ],
)
def test_refusals_of_su_are_explained(ann: HostConnection, user: str, text: str) -> None:
    with pytest.raises(BecomeFailed, match=text):
        open_become(ann, GREETER, Become("su", user, BOBS), b"greeting")


def test_a_question_about_a_new_password_gets_no_answer(
    ann: HostConnection, sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(become, "ANSWER_TIME", 3.0)
    with pytest.raises(BecomeFailed, match="su did not start the program within 3 s") as caught:
        open_become(ann, GREETER, Become("su", "stale", BOBS))
    assert "required to change your password" in caught.value.hint
    assert sent == [f"{BOBS}\n".encode()]


class Pretender:
    """A connection that runs the same shell script in place of every program."""

    host, peer = "fake", "local"
    warnings: tuple[str, ...] = ()

    def __init__(self, script: str) -> None:
        self.script = script
        self.local = connect(Target(LOCAL), SshSettings())

    def open(self, command: Sequence[str]) -> Stream:
        return self.local.open(["sh", "-c", self.script])

    def close(self) -> None:
        self.local.close()


@pytest.mark.parametrize(
    "said", ["New Password: ", "Password: \\n", "Password: for the door", "Password:", "(old) Password: "]
)
def test_only_the_exact_prompt_of_su_gets_the_password(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(become, "ANSWER_TIME", 0.5)
    got = tmp_path_factory.mktemp("su") / "got"
    pretender = Pretender(f"printf '{said}' >&2; cat > {got}")
    with pytest.raises(BecomeFailed, match="su did not start the program within"):
        open_become(pretender, GREETER, Become("su", password=ROOTS))
    pretender.close()
    assert got.read_bytes() == b""


def test_a_second_su_prompt_gets_no_password(tmp_path_factory: pytest.TempPathFactory) -> None:
    got = tmp_path_factory.mktemp("su") / "got"
    pretender = Pretender(f"printf 'Password: ' >&2; read x; printf '\\nPassword: ' >&2; cat > {got}")
    with pytest.raises(BecomeFailed, match="su rejected the password"):
        open_become(pretender, GREETER, Become("su", password=ROOTS))
    pretender.close()
    assert got.read_bytes() == b""
