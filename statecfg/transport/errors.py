"""The exceptions of the transports. Their messages are safe to print.

TransportError
├── Unreachable            no connection: name, network, jump host, handshake
├── HostKeyRejected        the host's key is not the known key
├── AuthenticationFailed   the host refused the login
├── ConnectionLost         an established connection ended
│   └── WorkerLost         the worker that held it ended
└── BecomeFailed           sudo, doas or su did not start the program
"""

from __future__ import annotations

import unicodedata

from statecfg.remote.graph.errors import StatecfgError

MAX_TEXT = 2000


class TransportError(StatecfgError):
    """A connection to one host failed.

    :param host: the host's name in the inventory
    :param summary: what is wrong, in one short line
    :param hint: what to do; "" if there is no advice
    """

    def __init__(self, host: str, summary: str, hint: str = "") -> None:
        super().__init__(host, summary, hint)
        self.host = clean(host)
        self.summary = clean(summary).replace("\n", " ")
        self.hint = clean(hint)

    def __str__(self) -> str:
        return f"{self.host}: {self.summary}" + (f"\n  {self.hint}" if self.hint else "")


class Unreachable(TransportError):
    """The host could not be reached. Nothing was sent."""


class HostKeyRejected(TransportError):
    """The host's key is unknown, changed or revoked. Nothing was sent."""


class AuthenticationFailed(TransportError):
    """The host refused every available key."""


class ConnectionLost(TransportError):
    """The connection ended too early. The result of running actions is unknown."""


class WorkerLost(ConnectionLost):
    """The worker that held the connection ended. The host may be fine."""


class BecomeFailed(TransportError):
    """sudo, doas or su did not start the program."""


def clean(text: str) -> str:
    """Return a host's text in a form that is harmless in a terminal and a log.

    Source: ECMA-48 controls, Unicode categories C*.

    :param text: any text
    :returns: at most 2000 characters; each control, format, surrogate and private character is replaced by `�`, except
        newline and tab
    """
    if len(text) > MAX_TEXT:
        text = text[: MAX_TEXT - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in "\n\t" or (unicodedata.category(c)[0] != "C" and c not in "\u2028\u2029") else "\ufffd" for c in text
    )
