"""Start a program as another user, by sudo or doas; the password goes to sudo's own prompt and nowhere else."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import Connection, Stream
from .errors import BecomeFailed, ConnectionLost

METHODS = ("sudo", "doas")
# PAM may make a wrong password wait for some seconds; sudo itself gives up after five minutes.
ANSWER_TIME = 30.0
POLL = 0.01
MOST_NOISE = 128 * 1024

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,254}\$?|#[0-9]{1,10}")
# What sudo and doas say, what it means, and what to do about it.
_REASONS = (
    (
        rb"not in the sudoers file|not allowed to execute|may not run sudo",
        "{user} may not be reached by {me} with sudo",
        "Let the host's sudoers allow it, or log in as somebody who may (-u).",
    ),
    (
        rb"a password is required|no askpass program|Authentication required",
        "{method} asks for a password: pass -K",
        "With -K you are asked for it; or let the host's {file} allow it without a password.",
    ),
    (
        rb"incorrect password|Sorry, try again",
        "sudo rejected the password",
        "It is that of the user who logs in. It was sent once, and is not sent again.",
    ),
    (
        rb"you must have a tty|no tty present",
        "sudo wants a terminal (requiretty), and there is none",
        "Take requiretty out of the host's sudoers, at least for this user.",
    ),
    (rb"unknown user|no such user", "there is no user {user}", "Make it first, or become another one (--become-user)."),
    (rb"(sudo|doas): (command )?not found", "{method} is not installed", "Install it, or log in as {user} (-u)."),
    (rb"Operation not permitted|doas: not enabled", "{method} does not let us become {user}", "See the host's {file}."),
)
_REJECTED = _REASONS[2]


@dataclass(frozen=True)
class Become:
    """Whom to become, and how. `method` sudo or doas; `user` a user of the host; `password` for sudo's prompt."""

    method: str = "sudo"
    user: str = "root"
    password: str | None = field(default=None, repr=False)


def prompt(nonce: str) -> str:
    """Return the prompt that sudo is told to show, which nobody else can know."""
    return f"[statecfg {nonce}] "


def wrap(argv: Sequence[str], become: Become, nonce: str) -> list[str]:
    """Return the argument list that runs `argv` as the other user.

    Parameters: `argv` the program; `become` whom; `nonce` 128 random bits in hex, for the prompt. With a password sudo
    reads it from its stdin when it asks (-S); without one it may not ask (-n). Raises ValueError.
    """
    if not _USER.fullmatch(become.user):
        raise ValueError(f"{become.user!r} is no user name")
    if become.method == "doas":
        if become.password is not None:
            raise ValueError("doas reads passwords from a terminal only: allow it with `nopass`, or use sudo")
        return ["doas", "-n", "-u", become.user, "--", *argv]
    if become.method != "sudo":
        raise ValueError(f"cannot become another user with {become.method!r}; known: {', '.join(METHODS)}")
    asks = ["-n"] if become.password is None else ["-S", "-p", prompt(nonce)]
    return ["sudo", "-H", *asks, "-u", become.user, "--", *argv]


def open_become(connection: Connection, argv: Sequence[str], become: Become, word: bytes = b"") -> Stream:
    """Start `argv` as the other user.

    Parameters: `connection`; `argv` a program that, when there is a password, writes something to stdout before it
    reads its stdin: only that tells that sudo won't take what follows for a password; `become`; `word` what the
    program writes, where a login shell may write something before it. Without a password
    nothing is waited for, and the first read or failing write says what sudo said. Returns the program's stream.
    Raises BecomeFailed, ConnectionLost.
    """
    nonce = secrets.token_hex(16)
    host = getattr(connection, "host", connection.peer)
    try:
        command = wrap(argv, become, nonce)
    except ValueError as error:
        raise BecomeFailed(host, str(error)) from error
    stream = BecomeStream(host, connection.open(command), become, nonce)
    if become.password is not None:
        try:
            stream.answer(word)
        except BaseException:
            stream.close()
            raise
    return stream


class BecomeStream:
    """The stream of a program behind sudo or doas; turns their refusals into BecomeFailed."""

    def __init__(self, host: str, stream: Stream, become: Become, nonce: str) -> None:
        self.host = host
        self.inner = stream
        self.become = become
        self.prompt = prompt(nonce).encode()
        self.first: bytes | None = None
        self.started = False

    def answer(self, word: bytes = b"") -> None:
        """Wait until the program runs; type the password when sudo asks, once. Raises BecomeFailed."""
        deadline = time.monotonic() + ANSWER_TIME
        answered = False
        while True:
            data = self._read_first()
            if data is not None:
                self.first = (self.first or b"") + data
                if word in self.first or len(self.first) > MOST_NOISE:
                    return
            asked = self.inner.stderr().count(self.prompt)
            if asked and not answered:
                answered = True
                self.inner.write((self.become.password or "").encode() + b"\n")
            elif asked > 1:
                raise BecomeFailed(self.host, _REJECTED[1], _REJECTED[2])
            if time.monotonic() > deadline:
                raise BecomeFailed(self.host, f"sudo did not start the program within {ANSWER_TIME:g} s", self._said())

    def write(self, data: bytes) -> None:
        """Send all of `data`; raises BecomeFailed when sudo ended instead of starting the program."""
        try:
            self.inner.write(data)
        except ConnectionLost as error:
            if not self.started:
                raise self._refusal() or error from error
            raise

    def read(self, timeout: float) -> bytes | None:
        """Return the next bytes as Stream.read does; raises BecomeFailed when sudo did not start the program."""
        if self.first is not None:
            greeting, self.first = self.first, None
            return greeting
        if self.started:
            return self.inner.read(timeout)
        data = self.inner.read(timeout)
        if data == b"":
            refusal = self._refusal()
            if refusal is not None:
                raise refusal
        self.started = data is not None
        return data

    def stderr(self) -> bytes:
        """Return the newest of stderr, without sudo's prompt."""
        return self.inner.stderr().replace(self.prompt, b"")

    def exit_status(self) -> int | None:
        """Return the exit status when it is known."""
        return self.inner.exit_status()

    def close(self) -> None:
        """End the conversation."""
        self.inner.close()

    def _read_first(self) -> bytes | None:
        data = self.inner.read(POLL)
        if data == b"":
            raise self._refusal() or BecomeFailed(self.host, "sudo ended before the program started", self._said())
        self.started = data is not None
        return data

    def _refusal(self) -> BecomeFailed | None:
        """Return what sudo or doas says about why it didn't start the program, if that is what happened."""
        # stderr comes by a way of its own, and may be a moment late.
        deadline = time.monotonic() + 0.5
        while not (said := self.stderr()) and time.monotonic() < deadline:
            time.sleep(POLL)
        if not re.search(rb"\b(sudo|sudoers|doas)\b|^Sorry, ", said, re.MULTILINE):
            return None
        for pattern, summary, hint in _REASONS:
            if re.search(pattern, said):
                file = "doas.conf" if self.become.method == "doas" else "sudoers"
                words = {"user": self.become.user, "method": self.become.method, "me": "this login", "file": file}
                heard = f"\n({self._said()})" if self._said() else ""
                return BecomeFailed(self.host, summary.format(**words), hint.format(**words) + heard)
        return BecomeFailed(self.host, f"{self.become.method} did not start the program", self._said())

    def _said(self) -> str:
        lines = self.stderr().decode("utf-8", "replace").strip().splitlines()
        return "; ".join(line.strip() for line in lines[-3:])
