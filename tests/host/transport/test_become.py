"""Becoming another user on a real host with the real sudo."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from statecfg.transport import BecomeFailed, HostConnection, SshSettings, Stream, Target, connect
from statecfg.transport.become import Become, open_become, wrap
from tests.lab import Host, add_user

PASSWORD = "correct horse"
NONCE = "0123456789abcdef" * 2
# Like the executor, this program sends a greeting before it reads its stdin.
GREETER = ["sh", "-c", "echo greeting; id -un; cat"]


@pytest.fixture(scope="module")
def host(light_host: Host) -> Host:
    add_user(light_host, "free", sudo="nopasswd")
    add_user(light_host, "asked", sudo="password", password=PASSWORD)
    add_user(light_host, "nobodys", password=PASSWORD)
    return light_host


def login(host: Host, user: str) -> HostConnection:
    target = Target(host.name, host.address, host.port, user, (str(host.identity),))
    return connect(target, SshSettings(ssh_config="none", known_hosts=(str(host.known_hosts),), use_agent=False))


@pytest.fixture
def connections(host: Host) -> Iterator[dict[str, HostConnection]]:
    opened = {user: login(host, user) for user in ("free", "asked", "nobodys")}
    yield opened
    for connection in opened.values():
        connection.close()


def read_until(stream: Stream, word: bytes, seconds: float = 30) -> bytes:
    got = b""
    deadline = time.monotonic() + seconds
    while word not in got:
        assert time.monotonic() < deadline, got
        got += stream.read(0.5) or b""
    return got


def test_sudo_without_a_password_starts_the_program(connections: dict[str, HostConnection]) -> None:
    stream = open_become(connections["free"], GREETER, Become())
    stream.write(b"data\n")
    assert read_until(stream, b"data\n") == b"greeting\nroot\ndata\n"


def test_sudo_gets_the_password_only_at_its_prompt(connections: dict[str, HostConnection]) -> None:
    stream = open_become(connections["asked"], GREETER, Become(password=PASSWORD))
    stream.write(b"data\n")
    got = read_until(stream, b"data\n")
    assert got == b"greeting\nroot\ndata\n"
    assert b"[statecfg" not in stream.stderr()


def test_the_password_is_not_sent_if_sudo_does_not_ask(connections: dict[str, HostConnection]) -> None:
    stream = open_become(connections["free"], GREETER, Become(password=PASSWORD))
    stream.write(b"data\n")
    got = read_until(stream, b"data\n")
    assert PASSWORD.encode() not in got
    assert got == b"greeting\nroot\ndata\n"


def test_sudo_can_become_a_user_other_than_root(connections: dict[str, HostConnection]) -> None:
    stream = open_become(connections["asked"], GREETER, Become(user="free", password=PASSWORD))
    assert b"\nfree\n" in read_until(stream, b"free\n")


def test_sudo_gets_a_wrong_password_only_once(
    connections: dict[str, HostConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    from statecfg.transport.ssh_stream import SshStream

    sent: list[bytes] = []
    write = SshStream.write

    def noted(stream: SshStream, data: bytes) -> None:
        sent.append(data)
        write(stream, data)

    monkeypatch.setattr(SshStream, "write", noted)
    begun = time.monotonic()
    with pytest.raises(BecomeFailed, match="sudo rejected the password"):
        open_become(connections["asked"], GREETER, Become(password="wrong"))
    assert time.monotonic() - begun < 20
    assert sent == [b"wrong\n"]


def test_reading_reports_a_missing_sudo_password(connections: dict[str, HostConnection]) -> None:
    stream = open_become(connections["asked"], GREETER, Become())
    with pytest.raises(BecomeFailed, match="sudo asks for a password: pass -K"):
        read_until(stream, b"never")


def test_writing_reports_a_missing_sudo_password(connections: dict[str, HostConnection]) -> None:
    stream = open_become(connections["asked"], GREETER, Become())
    time.sleep(0.5)
    with pytest.raises(BecomeFailed, match="pass -K"):
        for _ in range(100):
            stream.write(b"x" * 1_000_000)


def test_a_login_that_sudo_does_not_allow_is_reported(connections: dict[str, HostConnection]) -> None:
    with pytest.raises(BecomeFailed, match="sudo does not allow this login to become"):
        open_become(connections["nobodys"], GREETER, Become(password=PASSWORD))


def test_an_unknown_user_is_reported(connections: dict[str, HostConnection]) -> None:
    stream = open_become(connections["free"], GREETER, Become(user="ghost"))
    with pytest.raises(BecomeFailed, match="user ghost does not exist"):
        read_until(stream, b"never")


def test_a_missing_program_is_reported(connections: dict[str, HostConnection]) -> None:
    stream = open_become(connections["free"], ["/no/such/program"], Become())
    with pytest.raises(BecomeFailed, match="/no/such/program: command not found"):
        read_until(stream, b"never")


def test_a_failure_of_the_program_is_not_blamed_on_sudo(connections: dict[str, HostConnection]) -> None:
    stream = open_become(connections["free"], ["sh", "-c", "echo 'No such file' >&2; exit 3"], Become())
    assert stream.read(30) == b""


@pytest.fixture
def doas(host: Host) -> Host:
    if not host.path("/usr/bin/doas").exists():
        pytest.skip("not run on this machine: the Debian package opendoas is missing")
    return host


def test_doas_without_a_password_starts_the_program(doas: Host, connections: dict[str, HostConnection]) -> None:
    doas.write("/etc/doas.conf", "permit nopass free\n", 0o600)
    stream = open_become(connections["free"], GREETER, Become("doas"))
    stream.write(b"data\n")
    assert read_until(stream, b"data\n") == b"greeting\nroot\ndata\n"


@pytest.mark.parametrize(
    ("config", "user", "text"),
    [
        ("permit free\n", "root", "doas asks for a password, which it reads only from a terminal"),
        ("permit nopass asked\n", "root", "doas does not allow this login to become root"),
        ("permit nopass free\n", "ghost", "user ghost does not exist"),
        (None, "root", "doas does not allow this login to become root"),
    ],
)
def test_refusals_of_doas_are_explained(
    doas: Host, connections: dict[str, HostConnection], config: str | None, user: str, text: str
) -> None:
    if config is None:
        doas.run(["rm", "-f", "/etc/doas.conf"])
    else:
        doas.write("/etc/doas.conf", config, 0o600)
    stream = open_become(connections["free"], GREETER, Become("doas", user))
    with pytest.raises(BecomeFailed, match=text):
        read_until(stream, b"never")


@pytest.mark.parametrize(("method", "program"), [("doas", "doas"), ("su", "su")])
def test_a_method_that_is_not_installed_is_reported(
    host: Host, connections: dict[str, HostConnection], method: str, program: str
) -> None:
    hidden = f"/usr/bin/{program}"
    there = host.path(hidden).exists()
    if there:
        host.run(["mv", hidden, f"{hidden}.away"])
    try:
        with pytest.raises(BecomeFailed, match=f"{method} is not installed"):
            read_until(open_become(connections["free"], GREETER, Become(method)), b"never")
    finally:
        if there:
            host.run(["mv", f"{hidden}.away", hidden])


def test_a_foreign_prompt_gets_no_password(host: Host, connections: dict[str, HostConnection], tmp_path: Path) -> None:
    """A program with another prompt than ours gets no input, and the run ends."""
    from statecfg.transport import become

    class Fake:
        host, peer = "fake", "local"
        warnings: tuple[str, ...] = ()

        def open(self, command: Sequence[str]) -> Stream:
            return connections["free"].open(["sh", "-c", "printf '[sudo] password for free: ' >&2; cat > got; sleep 9"])

        def close(self) -> None:
            """Do nothing, as nothing is open."""

    saved, become.ANSWER_TIME = become.ANSWER_TIME, 0.5
    try:
        with pytest.raises(BecomeFailed, match="did not start the program within"):
            open_become(Fake(), GREETER, Become(password=PASSWORD))
    finally:
        become.ANSWER_TIME = saved
    assert host.read("/home/free/got") == ""


def test_the_password_appears_in_no_argument_list_or_repr() -> None:
    become = Become(password=PASSWORD)
    assert PASSWORD not in repr(become)
    assert not [word for word in wrap(GREETER, become, NONCE) if PASSWORD in word]


@pytest.mark.parametrize(
    ("become", "command"),
    [
        (Become(), ["sudo", "-H", "-n", "-u", "root", "--", "id"]),
        (Become(password="x"), ["sudo", "-H", "-S", "-p", f"[statecfg {NONCE}] ", "-u", "root", "--", "id"]),
        (Become("doas", "web"), ["doas", "-n", "-u", "web", "--", "id"]),
        (Become("su", "web"), ["su", "-s", "/bin/sh", "-c", "exec id", "--", "web"]),
    ],
)
def test_wrap_builds_the_command_line_of_each_method(become: Become, command: list[str]) -> None:
    started = wrap(["id"], become, NONCE)
    assert started[:2] == ["/bin/sh", "-c"]
    assert started[3:] == command


@pytest.mark.parametrize(
    ("become", "text"),
    [
        (Become("pfexec"), "use one of: sudo, doas, su"),
        (Become("doas", password="x"), "doas reads passwords only from a terminal"),
        (Become(user="-s"), "is not a user name"),
        (Become(user="a b"), "is not a user name"),
    ],
)
def test_wrap_refuses_invalid_methods_and_users(become: Become, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        wrap(["id"], become, NONCE)


@pytest.mark.parametrize(
    ("method", "user", "password", "prompt"),
    [
        ("sudo", "root", PASSWORD, '"$4"'),
        ("su", "nobodys", PASSWORD, '"Password: "'),
        ("doas", "root", None, '""'),
    ],
    ids=["sudo", "su", "doas"],
)
def test_a_fake_program_in_the_logins_path_is_not_started(
    host: Host, request: pytest.FixtureRequest, method: str, user: str, password: str | None, prompt: str
) -> None:
    """Someone who can only write the login's files could put a fake sudo first in its PATH, to get the password."""
    login_name, home = f"lured-{method}", f"/home/lured-{method}"
    add_user(host, login_name, sudo="password" if method == "sudo" else "", password=PASSWORD)
    if method == "doas":
        request.getfixturevalue("doas")
        host.write("/etc/doas.conf", f"permit nopass {login_name}\n", 0o600)
    host.run(["mkdir", "-p", f"{home}/bin"])
    fake = f"#!/bin/sh\nprintf %s {prompt} >&2; head -n 1 > {home}/stolen; echo greeting; echo {user}; exec cat\n"
    host.write(f"{home}/bin/{method}", fake, 0o755)
    host.write(f"{home}/.bashrc", f"PATH={home}/bin:$PATH\n")
    host.run(["chown", "-R", f"{login_name}:", home])
    connection = login(host, login_name)
    try:
        stream = connection.open(["sh", "-c", f"command -v {method}"])
        assert read_until(stream, b"\n").decode() == f"{home}/bin/{method}\n"
        stream = open_become(connection, GREETER, Become(method, user, password))
        stream.write(b"data\n")
        assert read_until(stream, b"data\n") == f"greeting\n{user}\ndata\n".encode()
    finally:
        connection.close()
    assert not host.path(f"{home}/stolen").exists()
