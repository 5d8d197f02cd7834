"""The controller's half of the lock-out guard: a second login, in addition to the connection of the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from statecfg.remote.wire import frames as wire
from statecfg.transport import (
    LOCAL,
    AuthenticationFailed,
    BecomeFailed,
    HostConnection,
    HostKeyRejected,
    Target,
    TransportError,
)
from statecfg.transport.become import Become, open_become

WAIT = 30.0  # seconds in which a login must succeed; sshd may still be starting
PAUSE = 0.5  # seconds between two attempts


def by_ssh(target: Target) -> bool:
    """Return whether statecfg reaches a host over SSH. Only then does a new login test sshd."""
    return target.transport != "local" and target.name != LOCAL


def aside(
    connect: Callable[[], HostConnection],
    argv: Sequence[str],
    become: Become | None,
    answer: Callable[[str], None],
) -> None:
    """Call `try_login` in its own thread, and pass its result to `answer`."""

    def run() -> None:
        try:
            wrong = try_login(connect, argv, become)
        except Exception as problem:  # a bug of statecfg: the host reverts its change and reports why
            wrong = f"statecfg failed: {problem!r}"
        answer(wrong)

    threading.Thread(target=run, daemon=True).start()


def try_login(
    connect: Callable[[], HostConnection], argv: Sequence[str], become: Become | None, seconds: float = WAIT
) -> str:
    """Log in again, and start a program.

    A refused login is final, because another attempt could lock the account. A refused host key is final, too.

    :param connect: connects with the same options as before
    :param argv: the program; it must print the executor's greeting
    :param become: as which user the run starts it: a change of PAM can also break sudo
    :param seconds: time in which the login must succeed
    :returns: why the login failed, "" if it succeeded
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return _once(connect, argv, become, deadline)
        except (AuthenticationFailed, BecomeFailed, HostKeyRejected) as problem:
            return problem.summary
        except TransportError as problem:
            if time.monotonic() + PAUSE > deadline:
                return problem.summary
            time.sleep(PAUSE)


def _once(connect: Callable[[], HostConnection], argv: Sequence[str], become: Become | None, deadline: float) -> str:
    connection = connect()
    try:
        stream = open_become(connection, argv, become, wire.GREETING) if become else connection.open(argv)
        try:
            output = b""
            while wire.GREETING not in output and len(output) <= wire.NOISE:
                data = stream.read(0.2)
                if data == b"":
                    errors = stream.stderr().decode("utf-8", "replace").strip()[-300:]
                    return "the login succeeded, but no program could be started" + (f": {errors}" if errors else "")
                if data is None and time.monotonic() > deadline:
                    return "the login succeeded, but no program started in time"
                output += data or b""
            return "" if wire.GREETING in output else "the login succeeded, but an unexpected program answered"
        finally:
            stream.close()
    finally:
        connection.close()
