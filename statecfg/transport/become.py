"""Start a program as another user, by sudo, doas or su; the password goes to their own prompt and nowhere else.

sudo shows a prompt that we choose, at random. su does not: it runs in the C locale, where its prompt is `Password: `,
and is answered while that, alone on its line, is the last that came on stderr. su reads from its stdin when that is no
terminal, no more than the line, and can't be told not to ask; so the program gets its first input only after it has
written something itself.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import Connection, Stream
from .errors import BecomeFailed, ConnectionLost
from .quoting import command_line

METHODS = ("sudo", "doas", "su")
# PAM may make a wrong password wait for some seconds; sudo itself gives up after five minutes.
ANSWER_TIME = 30.0
POLL = 0.01
MOST_NOISE = 128 * 1024

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,254}\$?|#[0-9]{1,10}")
# What they say on stderr, what it means, and what to do about it.
_Reasons = tuple[tuple[bytes, str, str], ...]
_SUDO: _Reasons = (
    (
        rb"not in the sudoers file|not allowed to execute|may not run sudo",
        "{user} may not be reached by this login with sudo",
        "Let the host's sudoers allow it, or log in as somebody who may (-u).",
    ),
    (
        rb"a password is required|no askpass program",
        "sudo asks for a password: pass -K",
        "With -K you are asked for it; or let the host's sudoers allow it without a password.",
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
)
_DOAS: _Reasons = (
    (
        rb"Authentication required",
        "doas asks for a password, which it reads from a terminal only",
        "Let the host's doas.conf allow it with `nopass`, or use sudo.",
    ),
    (
        rb"Operation not permitted|not enabled",
        "doas does not let this login become {user}",
        "See the host's doas.conf.",
    ),
)
_SU: _Reasons = (
    (
        rb"using restricted shell",
        "su insists on the shell of {user}, which runs no commands",
        "Only root may choose another: use sudo.",
    ),
    (
        rb"has expired",
        "the account {user} has expired",
        "Renew it, or become another user (--become-user).",
    ),
    (
        rb"must be run from a terminal",
        "su wants a terminal, and there is none",
        "Use sudo.",
    ),
    (
        rb"Authentication failure|incorrect password",
        "su rejected the password",
        "It is that of {user}, the user to become. It was sent once, and is not sent again.",
    ),
    (
        rb"Permission denied",
        "su does not let this login become {user}",
        "See the host's /etc/pam.d/su, or use sudo.",
    ),
)
_ALL: _Reasons = (
    (
        rb"unknown user|no such user|user \S+ does not exist|No passwd entry",
        "there is no user {user}",
        "Make it first, or become another one (--become-user).",
    ),
    (
        rb"\b(sudo|doas|su)'?: (command )?(not found|No such file)",
        "{method} is not installed",
        "Install it, or log in as {user} (-u).",
    ),
)
_REASONS = {"sudo": _SUDO + _ALL, "doas": _DOAS + _ALL, "su": _SU + _ALL}
_REJECTED = {"sudo": _SUDO[2], "su": _SU[3]}
_NEEDS_ONE = (
    "su asks for a password: pass -K",
    "With -K you are asked for it, the one of {user}; or use sudo, which can allow it without one.",
)
# A line of one of them, or of a shell or env that did not find one.
_THEIRS = re.compile(rb"\b(sudo|sudoers|doas)\b|^Sorry, |^su: |\bsu'?: |using restricted shell", re.MULTILINE)


@dataclass(frozen=True)
class Become:
    """Whom to become, and how.

    `method` sudo, doas or su; `user` a user of the host; `password` for the prompt: sudo wants that of the user who
    logs in, su that of `user`, and doas takes none.
    """

    method: str = "sudo"
    user: str = "root"
    password: str | None = field(default=None, repr=False)


# Directories that only root can write to. A login that somebody else has taken over can put a sudo of its own first in
# its PATH, which would get the password; so PATH decides only if the program is in none of them.
_PLACES = "/usr/bin /bin /usr/local/bin /run/wrappers/bin"
_START = f'for p in {_PLACES}; do [ -x "$p/$0" ] && exec "$p/$0" "$@"; done; exec "$0" "$@"'
_ENGLISH = "LC_ALL=C; export LC_ALL; "


def is_user(name: str) -> bool:
    """Return whether a text can be the name of a user to become."""
    return _USER.fullmatch(name) is not None


def prompt(become: Become, nonce: str) -> str:
    """Return the prompt that will be shown: for sudo one that nobody else can know, else that of PAM in English."""
    return f"[statecfg {nonce}] " if become.method == "sudo" else "Password: "


def wrap(argv: Sequence[str], become: Become, nonce: str) -> list[str]:
    """Return the argument list that runs `argv` as the other user.

    Parameters: `argv` the program; `become` whom; `nonce` 128 random bits in hex, for the prompt. With a password sudo
    reads it from its stdin when it asks (-S); without one it may not ask (-n). su hands a line to a shell. The program
    is started by its absolute path if it is in one of the usual directories. Raises ValueError.
    """
    if not is_user(become.user):
        raise ValueError(f"{become.user!r} is no user name")
    if become.method == "doas":
        if become.password is not None:
            raise ValueError("doas reads passwords from a terminal only: allow it with `nopass`, or use sudo")
        return ["/bin/sh", "-c", _START, "doas", "-n", "-u", become.user, "--", *argv]
    if become.method == "su":
        line = command_line(["exec", *argv])
        return ["/bin/sh", "-c", _ENGLISH + _START, "su", "-s", "/bin/sh", "-c", line, "--", become.user]
    if become.method != "sudo":
        raise ValueError(f"cannot become another user with {become.method!r}; known: {', '.join(METHODS)}")
    asks = ["-n"] if become.password is None else ["-S", "-p", prompt(become, nonce)]
    return ["/bin/sh", "-c", _START, "sudo", "-H", *asks, "-u", become.user, "--", *argv]


def open_become(connection: Connection, argv: Sequence[str], become: Become, word: bytes = b"") -> Stream:
    """Start `argv` as the other user.

    Parameters: `connection`; `argv` a program that, by su or where there is a password, writes something to stdout
    before it reads its stdin: only that tells that what follows won't be taken for a password; `become`; `word` what
    the program writes, where a login shell may write something before it. By sudo or doas without a password nothing is
    waited for, and the first read or failing write says what they said. Returns the program's stream. Raises
    BecomeFailed, ConnectionLost.
    """
    nonce = secrets.token_hex(16)
    host = getattr(connection, "host", connection.peer)
    try:
        command = wrap(argv, become, nonce)
    except ValueError as error:
        raise BecomeFailed(host, str(error)) from error
    stream = BecomeStream(host, connection.open(command), become, nonce)
    if become.password is not None or become.method == "su":
        try:
            stream.answer(word)
        except BaseException:
            stream.close()
            raise
    return stream


class BecomeStream:
    """The stream of a program behind sudo, doas or su; turns their refusals into BecomeFailed."""

    def __init__(self, host: str, stream: Stream, become: Become, nonce: str) -> None:
        self.host = host
        self.inner = stream
        self.become = become
        self.prompt = prompt(become, nonce).encode()
        self.first: bytes | None = None
        self.started = False

    def answer(self, word: bytes = b"") -> None:
        """Wait until the program runs; type the password at the prompt, once. Raises BecomeFailed."""
        deadline = time.monotonic() + ANSWER_TIME
        answered = False
        while True:
            data = self._read_first()
            if data is not None:
                self.first = (self.first or b"") + data
                if word in self.first or len(self.first) > MOST_NOISE:
                    return
            elif not answered and self._asked():
                answered = True
                if self.become.password is None:
                    raise self._failed(*_NEEDS_ONE)
                self.inner.write(self.become.password.encode() + b"\n")
            elif answered and self.inner.stderr().count(self.prompt) > 1:
                raise self._failed(*_REJECTED[self.become.method][1:])
            if time.monotonic() > deadline:
                method = self.become.method
                late = f"{method} did not start the program within {ANSWER_TIME:g} s"
                raise BecomeFailed(self.host, late, self._said())

    def write(self, data: bytes) -> None:
        """Send all of `data`; raises BecomeFailed when there is no program, but a refusal."""
        try:
            self.inner.write(data)
        except ConnectionLost as error:
            if not self.started:
                raise self._refusal() or error from error
            raise

    def read(self, timeout: float) -> bytes | None:
        """Return the next bytes as Stream.read does; raises BecomeFailed as `write` does."""
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
        """Return the newest of stderr, without the prompt."""
        return self.inner.stderr().replace(self.prompt, b"", -1 if self.become.method == "sudo" else 1)

    def exit_status(self) -> int | None:
        """Return the exit status when it is known."""
        return self.inner.exit_status()

    def close(self) -> None:
        """End the conversation."""
        self.inner.close()

    def _asked(self) -> bool:
        said = self.inner.stderr()
        return self.prompt in said if self.become.method == "sudo" else said.rpartition(b"\n")[2] == self.prompt

    def _read_first(self) -> bytes | None:
        data = self.inner.read(POLL)
        if data == b"":
            ended = f"{self.become.method} ended before the program started"
            raise self._refusal() or BecomeFailed(self.host, ended, self._said())
        self.started = data is not None
        return data

    def _refusal(self) -> BecomeFailed | None:
        """Return what is said about why the program was not started, if that is what happened."""
        # stderr comes by a way of its own, and may be a moment late.
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            said = self.stderr()
            for pattern, summary, hint in _REASONS[self.become.method]:
                if _THEIRS.search(said) and re.search(pattern, said):
                    return self._failed(summary, f"{hint}\n({{said}})")
            time.sleep(POLL)
        if not _THEIRS.search(self.stderr()):
            return None
        return BecomeFailed(self.host, f"{self.become.method} did not start the program", self._said())

    def _failed(self, summary: str, hint: str) -> BecomeFailed:
        words = {"user": self.become.user, "method": self.become.method, "said": self._said()}
        return BecomeFailed(self.host, summary.format(**words), hint.format(**words))

    def _said(self) -> str:
        lines = self.stderr().decode("utf-8", "replace").strip().splitlines()
        return "; ".join(line.strip() for line in lines[-3:])
