"""The errors of the transports: one tree, whose texts are safe to print.

TransportError
├── Unreachable            no connection: name, network, jump host, handshake
├── HostKeyRejected        the host could not prove that it is the host we know
├── AuthenticationFailed   the host is who it says, and does not let us in
├── ConnectionLost         there was a connection, and it is gone
└── BecomeFailed           sudo, doas or su did not start the program
"""

from __future__ import annotations

import unicodedata

from statecfg.remote.graph.errors import StatecfgError

MAX_TEXT = 2000


class TransportError(StatecfgError):
    """Say what went wrong between us and one host.

    Parameters: `host` the name the user knows it by; `summary` one short line; `hint` what to do about it, or "".
    """

    def __init__(self, host: str, summary: str, hint: str = "") -> None:
        super().__init__(host, summary, hint)
        self.host = clean(host)
        self.summary = clean(summary).replace("\n", " ")
        self.hint = clean(hint)

    def __str__(self) -> str:
        return f"{self.host}: {self.summary}" + (f"\n  {self.hint}" if self.hint else "")


class Unreachable(TransportError):
    """No connection could be made; nothing was sent."""


class HostKeyRejected(TransportError):
    """The host's key is unknown, changed or revoked; nothing was sent."""


class AuthenticationFailed(TransportError):
    """The host refused every key we may use."""


class ConnectionLost(TransportError):
    """The connection ended before the conversation did: what was under way is unknown."""


class BecomeFailed(TransportError):
    """The program could not be started as the other user."""


def clean(text: str) -> str:
    """Make text that a host may have written harmless for a terminal and a log.

    Parameters: `text` anything. Returns it without control, format, surrogate and private characters (each becomes
    `�`; newline and tab stay), at most 2000 characters long. Source: ECMA-48 controls, Unicode categories C*.
    """
    if len(text) > MAX_TEXT:
        text = text[: MAX_TEXT - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in "\n\t" or (unicodedata.category(c)[0] != "C" and c not in "\u2028\u2029") else "\ufffd" for c in text
    )
