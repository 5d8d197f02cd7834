"""Start a program as another user with sudo, doas or su. The password is sent only to their prompt.

sudo shows a random prompt that we choose. su does not support that: it runs in the C locale, where its prompt is
`Password: `, and gets the password while this prompt, on its own line, is the last text on stderr. Without a terminal,
su reads exactly one line from its stdin, and it always asks. So the program gets its first input only after it has
written something.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import field

from statecfg.problems.frozen import dataclass

from . import HostConnection, Stream
from .errors import BecomeFailed, ConnectionLost
from .quoting import command_line

METHODS = ("sudo", "doas", "su")
# PAM may delay the answer to a wrong password by some seconds. sudo gives up after five minutes.
ANSWER_TIME = 30.0
POLL = 0.01
MOST_NOISE = 128 * 1024

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,254}\$?|#[0-9]{1,10}")
# A pattern for their message on stderr, what it means, and what to do.
_Reasons = tuple[tuple[bytes, str, str], ...]
_SUDO: _Reasons = (
    (
        rb"not in the sudoers file|not allowed to execute|may not run sudo",
        "sudo does not allow this login to become {user}",
        "Allow it in the host's sudoers, or log in as another user (-u).",
    ),
    (
        rb"a password is required|no askpass program",
        "sudo asks for a password: pass -K",
        "statecfg then asks you for it. Or allow sudo without a password in the host's sudoers.",
    ),
    (
        rb"incorrect password|Sorry, try again",
        "sudo rejected the password",
        "Enter the password of the user who logs in. statecfg sent it once and does not retry.",
    ),
    (
        rb"you must have a tty|no tty present",
        "sudo requires a terminal (requiretty), and statecfg does not use one",
        "Remove requiretty from the host's sudoers, at least for this user.",
    ),
)
_DOAS: _Reasons = (
    (
        rb"Authentication required",
        "doas asks for a password, which it reads only from a terminal",
        "Allow it with `nopass` in the host's doas.conf, or use sudo.",
    ),
    (
        rb"Operation not permitted|not enabled",
        "doas does not allow this login to become {user}",
        "Allow it in the host's doas.conf.",
    ),
)
_SU: _Reasons = (
    (
        rb"using restricted shell",
        "su only starts the shell of {user}, which does not run commands",
        "Use sudo: su lets only root choose another shell.",
    ),
    (
        rb"has expired",
        "the account {user} has expired",
        "Renew the account, or become another user (--become-user).",
    ),
    (
        rb"must be run from a terminal",
        "su requires a terminal, and statecfg does not use one",
        "Use sudo.",
    ),
    (
        rb"Authentication failure|incorrect password",
        "su rejected the password",
        "Enter the password of {user}, the user to become. statecfg sent it once and does not retry.",
    ),
    (
        rb"Permission denied",
        "su does not allow this login to become {user}",
        "Allow it in the host's /etc/pam.d/su, or use sudo.",
    ),
)
_ALL: _Reasons = (
    (
        rb"unknown user|no such user|user \S+ does not exist|No passwd entry",
        "user {user} does not exist",
        "Create the user first, or become another user (--become-user).",
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
    "statecfg then asks you for the password of {user}. Or use sudo, which can work without a password.",
)
# A message of one of these programs, or of a shell or env that did not find it.
_REFUSAL = re.compile(rb"\b(sudo|sudoers|doas)\b|^Sorry, |^su: |\bsu'?: |using restricted shell", re.MULTILINE)


@dataclass(frozen=True)
class Become:
    """The user to become, and the program to use.

    :param method: sudo, doas or su
    :param user: a user of the host
    :param password: for sudo, the password of the user who logs in; for su, that of `user`; for doas, None
    """

    method: str = "sudo"
    user: str = "root"
    password: str | None = field(default=None, repr=False)


# Directories that only root can write to. An attacker who controls the login could put another sudo first in PATH to
# get the password, so PATH is used only if the program is in none of these.
_DIRECTORIES = "/usr/bin /bin /usr/local/bin /run/wrappers/bin"
_START = f'for p in {_DIRECTORIES}; do [ -x "$p/$0" ] && exec "$p/$0" "$@"; done; exec "$0" "$@"'
_ENGLISH = "LC_ALL=C; export LC_ALL; "


def is_user(name: str) -> bool:
    """Return whether a string is a valid name of a user to become."""
    return _USER.fullmatch(name) is not None


def prompt(become: Become, nonce: str) -> str:
    """Return the expected prompt: for sudo a random prompt, otherwise PAM's prompt in English."""
    return f"[statecfg {nonce}] " if become.method == "sudo" else "Password: "


def wrap(argv: Sequence[str], become: Become, nonce: str) -> list[str]:
    """Return the argument list that runs a program as another user.

    With a password, sudo reads it from its stdin (-S); without one, it must not ask (-n). su passes a line to a shell.
    sudo, doas or su is started by its absolute path if it is in one of the usual directories.

    :param argv: the program and its arguments
    :param nonce: 128 random bits in hex, for the prompt
    :raises ValueError: the user name or method is invalid, or doas would need a password
    """
    if not is_user(become.user):
        raise ValueError(f"{become.user!r} is not a user name")
    if become.method == "doas":
        if become.password is not None:
            raise ValueError("doas reads passwords only from a terminal: allow it with `nopass`, or use sudo")
        return ["/bin/sh", "-c", _START, "doas", "-n", "-u", become.user, "--", *argv]
    if become.method == "su":
        line = command_line(["exec", *argv])
        return ["/bin/sh", "-c", _ENGLISH + _START, "su", "-s", "/bin/sh", "-c", line, "--", become.user]
    if become.method != "sudo":
        raise ValueError(f"cannot become another user with {become.method!r}; use one of: {', '.join(METHODS)}")
    asks = ["-n"] if become.password is None else ["-S", "-p", prompt(become, nonce)]
    return ["/bin/sh", "-c", _START, "sudo", "-H", *asks, "-u", become.user, "--", *argv]


def open_become(connection: HostConnection, argv: Sequence[str], become: Become, word: bytes = b"") -> Stream:
    """Start a program as another user.

    With su or a password, this waits for output of the program, which proves that the prompt no longer reads the input.
    Otherwise it does not wait: if the start fails, the first read or a later write raises the error.

    :param argv: the program and its arguments. With su or a password, the program must write to stdout before it reads
    :param word: what the program writes first; a login shell may write other text before it
    :returns: the stream of the program
    :raises BecomeFailed: sudo, doas or su refused
    :raises ConnectionLost: the connection ended
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
    """The stream of a program started with sudo, doas or su. It raises their refusals as BecomeFailed."""

    def __init__(self, host: str, stream: Stream, become: Become, nonce: str) -> None:
        self.host = host
        self.inner = stream
        self.become = become
        self.prompt = prompt(become, nonce).encode()
        self.first: bytes | None = None
        self.started = False

    def answer(self, word: bytes = b"") -> None:
        """Send the password once at the prompt, and wait until the program writes something.

        :param word: wait until the program wrote this
        :raises BecomeFailed: sudo or su refused, or the program did not start in time
        """
        deadline = time.monotonic() + ANSWER_TIME
        answered = False
        while True:
            data = self._read_first()
            if data is not None:
                self.first = (self.first or b"") + data
                if word in self.first or len(self.first) > MOST_NOISE:
                    return
            elif not answered and self._prompted():
                answered = True
                if self.become.password is None:
                    raise self._failed(*_NEEDS_ONE)
                self.inner.write(self.become.password.encode() + b"\n")
            elif answered and self.inner.stderr().count(self.prompt) > 1:
                raise self._failed(*_REJECTED[self.become.method][1:])
            if time.monotonic() > deadline:
                method = self.become.method
                detail = f"{method} did not start the program within {ANSWER_TIME:g} s"
                raise BecomeFailed(self.host, detail, self._message())

    def write(self, data: bytes) -> None:
        """Send all of `data`.

        :raises BecomeFailed: the program was not started
        :raises ConnectionLost: see `Stream.write`
        """
        try:
            self.inner.write(data)
        except ConnectionLost as error:
            if not self.started:
                raise self._refusal() or error from error
            raise

    def read(self, timeout: float) -> bytes | None:
        """Return the next bytes; see `Stream.read`.

        :raises BecomeFailed: the program was not started
        """
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
        """Return the newest bytes of stderr without the prompt."""
        return self.inner.stderr().replace(self.prompt, b"", -1 if self.become.method == "sudo" else 1)

    def exit_status(self) -> int | None:
        """Return the exit status; None while it is unknown."""
        return self.inner.exit_status()

    def close(self) -> None:
        """Close the stream."""
        self.inner.close()

    def _prompted(self) -> bool:
        message = self.inner.stderr()
        return self.prompt in message if self.become.method == "sudo" else message.rpartition(b"\n")[2] == self.prompt

    def _read_first(self) -> bytes | None:
        data = self.inner.read(POLL)
        if data == b"":
            detail = f"{self.become.method} ended before the program started"
            raise self._refusal() or BecomeFailed(self.host, detail, self._message())
        self.started = data is not None
        return data

    def _refusal(self) -> BecomeFailed | None:
        """Return the reason why the program was not started; None if it was started."""
        # stderr is a separate stream and may arrive later.
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            message = self.stderr()
            for pattern, summary, hint in _REASONS[self.become.method]:
                if _REFUSAL.search(message) and re.search(pattern, message):
                    return self._failed(summary, f"{hint}\n({{message}})")
            time.sleep(POLL)
        if not _REFUSAL.search(self.stderr()):
            return None
        return BecomeFailed(self.host, f"{self.become.method} did not start the program", self._message())

    def _failed(self, summary: str, hint: str) -> BecomeFailed:
        words = {"user": self.become.user, "method": self.become.method, "message": self._message()}
        return BecomeFailed(self.host, summary.format(**words), hint.format(**words))

    def _message(self) -> str:
        lines = self.stderr().decode("utf-8", "replace").strip().splitlines()
        return "; ".join(line.strip() for line in lines[-3:])
