"""The controller's half of the lock-out guard: a login beside the one that a run goes over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from statecfg.remote.wire import frames as wire
from statecfg.transport import LOCAL, AuthenticationFailed, HostKeyRejected, Settings, Target, TransportError, connect

WAIT = 30.0  # seconds in which a login has to succeed: sshd may just be starting
PAUSE = 0.5  # seconds between two tries


def by_ssh(target: Target) -> bool:
    """Tell whether a host is reached over SSH, so that a new login tells whether sshd lets us in."""
    return target.transport != "local" and target.name != LOCAL


def aside(target: Target, settings: Settings | None, argv: Sequence[str], answer: Callable[[str], None]) -> None:
    """Try a login in a thread of its own, and pass on what `try_login` returns."""

    def run() -> None:
        try:
            wrong = try_login(target, settings, argv)
        except Exception as problem:  # our own mistake: the host takes its change back, and says why
            wrong = f"statecfg failed: {problem!r}"
        answer(wrong)

    threading.Thread(target=run, daemon=True).start()


def try_login(target: Target, settings: Settings | None, argv: Sequence[str], seconds: float = WAIT) -> str:
    """Log in once more by the same way, as the same user, and start a program.

    Parameters: `argv` the program, which has to greet as our executor does; `seconds` in which it has to succeed. A
    refused key is final: trying it again could lock the account. Returns why it failed, "" where it did not.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return _once(target, settings, argv, deadline)
        except (AuthenticationFailed, HostKeyRejected) as problem:
            return problem.summary
        except TransportError as problem:
            if time.monotonic() + PAUSE > deadline:
                return problem.summary
            time.sleep(PAUSE)


def _once(target: Target, settings: Settings | None, argv: Sequence[str], deadline: float) -> str:
    connection = connect(target, settings)
    try:
        stream = connection.open(argv)
        try:
            said = b""
            while wire.GREETING not in said and len(said) <= wire.NOISE:
                data = stream.read(0.2)
                if data == b"":
                    errors = stream.stderr().decode("utf-8", "replace").strip()[-300:]
                    return "the login succeeded, but no program could be started" + (f": {errors}" if errors else "")
                if data is None and time.monotonic() > deadline:
                    return "the login succeeded, but no program began in time"
                said += data or b""
            return "" if wire.GREETING in said else "the login succeeded, but another program than ours answered"
        finally:
            stream.close()
    finally:
        connection.close()
