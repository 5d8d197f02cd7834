"""What hides in a value is data beside the value: which parts are secret, and a keyed digest of each line of a part.

The ledger stores a string with secrets as `{"$hidden": [PIECE, …]}`. A piece is text, or `[NAME, LINES]` for a secret:
for each line its digest and its length, null if an earlier version did not record them. The key of the digests never
leaves the host.

While a node is undone, a stand-in takes the place of each secret line: a random string that nothing else contains. So
node types edit and compare texts without knowing the secrets. Reports show a stand-in as the mask of its secret.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Callable, List, Optional

from statecfg.remote.graph.masks import mask
from statecfg.remote.graph.sha256 import sha256
from statecfg.remote.machine.changes import HIDDEN, HOLDS, STAND_INS, with_digests

KEY = "digest.key"  # in the state directory
_START, _END = "\ue000", "\ue001"
_STAND_IN = re.compile(f"{_START}[0-9a-f]{{24}}{_END}")
# What an undo says about a secret that a ledger of 0.4.0 does not have. The next apply adds its digest.
UNKNOWN = "an earlier version recorded this without its secret, and statecfg knows it only after an apply"
_FORMER_MASK = re.compile(f"{mask('([^<>]*)')}")


class SecretDigests:
    """Computes the keyed digests of secrets. Only the owner of the state directory can read the key.

    :param state_dir: the state directory
    :param acting: the run may write
    """

    def __init__(self, state_dir: str, acting: bool) -> None:
        self.path, self.acting = os.path.join(state_dir, KEY), acting
        self._key = b""

    def key(self) -> bytes:
        """Return the key, b"" if there is none yet and this run only plans. Another run creates it on first use.

        :raises OSError: if it can't be read or created
        """
        if not self._key:
            try:
                with open(self.path, "rb") as stream:
                    self._key = stream.read()
            except FileNotFoundError:
                if not self.acting:
                    return b""
                from statecfg.remote.machine import durable

                durable.replace(self.path, [os.urandom(32)])
                return self.key()
            if len(self._key) < 32:
                raise OSError(f"{self.path} is damaged: remove it; statecfg then creates a new key")
        return self._key

    def of(self, text: str) -> str:
        """Return the digest of a string: HMAC-SHA256 (RFC 2104). Python's module `hmac` would load OpenSSL."""
        key = self.key().ljust(64, b"\0")
        inner = sha256(bytes(byte ^ 0x36 for byte in key) + text.encode("utf-8", "surrogateescape")).digest()
        return sha256(bytes(byte ^ 0x5C for byte in key) + inner).hexdigest()[:32]

    def lines(self, secret: str) -> List[List[Any]]:
        """Return digest and length of each line of a secret."""
        return [[self.of(line), len(line)] for line in secret.split("\n")]


class StandIn:
    """What is known about a secret line: the name of the secret, its digest and its length.

    :param digest: None if it is unknown
    """

    def __init__(self, name: str, digest: Optional[str], length: int, digests: SecretDigests) -> None:
        self.name, self.digest, self.length, self.digests = name, digest, length, digests

    def matches(self, text: str) -> bool:
        """Tell whether a string is the secret line. Of an unknown one, only its mask is: then it was never a secret."""
        if self.digest is None:
            return text == mask(self.name)
        return bool(self.digests.key()) and self.digests.of(text) == self.digest


# Storing


def stored(value: Any, digests: SecretDigests, parts: Callable[[str], List[Any]], whole: str = "") -> Any:
    """Return a value as the ledger stores it: digests in place of secrets and content.

    :param parts: divides a string into strings and pairs of a secret's name and its text
    :param whole: the name of the attribute, if all of the value is secret; "" otherwise
    """
    if hasattr(value, "sha256"):
        if not (whole or value.hides()):
            return with_digests(value)
        pieces: List[Any] = ["sha256:", ["content", digests.lines(value.sha256)], f" ({value.size} bytes)"]
        return {HIDDEN: pieces}
    if isinstance(value, str):
        pieces = [[whole, digests.lines(value)]] if whole else _pieces(parts(value), digests)
        return {HIDDEN: pieces} if any(isinstance(piece, list) for piece in pieces) else value
    if whole:
        return {HIDDEN: [[whole, digests.lines(json.dumps(with_digests(value), sort_keys=True))]]}
    if isinstance(value, dict):
        return {_key(key): stored(item, digests, parts) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [stored(item, digests, parts) for item in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        pieces = _pieces(parts(repr(value)), digests)
        return {HIDDEN: pieces} if any(isinstance(piece, list) for piece in pieces) else value
    return value


def _pieces(found: List[Any], digests: SecretDigests) -> List[Any]:
    return [piece if isinstance(piece, str) else [piece[0], digests.lines(piece[1])] for piece in found]


def _key(key: object) -> str:
    return "$" + str(key) if str(key)[:1] == "$" else str(key)


def outline(value: Any) -> Any:
    """Return a stored value with masks in place of digests, to compare two versions of a secret."""
    if isinstance(value, dict) and HIDDEN in value:
        return "".join(piece if isinstance(piece, str) else mask(piece[0]) for piece in value[HIDDEN])
    if isinstance(value, dict):
        return {key: outline(item) for key, item in value.items()}
    return [outline(item) for item in value] if isinstance(value, list) else value


def unknown(value: Any) -> bool:
    """Tell whether a stored value has a secret whose digest an earlier version did not record."""
    if isinstance(value, dict) and HIDDEN in value:
        return any(not isinstance(piece, str) and piece[1] is None for piece in value[HIDDEN])
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(unknown, items))


def upgraded(value: Any) -> Any:
    """Return a value that an earlier version stored: with masks in its text, which may also be text of the user."""
    if isinstance(value, str):
        if value.startswith(HOLDS):
            return {HIDDEN: [["content", None]]}
        found = _FORMER_MASK.split(value)
        pieces = [part if at % 2 == 0 else [part, None] for at, part in enumerate(found)]
        return {HIDDEN: [piece for piece in pieces if piece]} if len(found) > 1 else value
    if isinstance(value, dict):
        return {_key(key): upgraded(item) for key, item in value.items()}
    return [upgraded(item) for item in value] if isinstance(value, list) else value


# Undoing


def restored(value: Any, digests: SecretDigests) -> Any:
    """Return a stored value for the undo: with a stand-in for each line of a secret."""
    if isinstance(value, dict) and HIDDEN in value:
        return "".join(piece if isinstance(piece, str) else _stand_ins(piece, digests) for piece in value[HIDDEN])
    if isinstance(value, dict):
        return {key[1:] if key[:1] == "$" else key: restored(item, digests) for key, item in value.items()}
    return [restored(item, digests) for item in value] if isinstance(value, list) else value


def _stand_ins(piece: List[Any], digests: SecretDigests) -> str:
    name, lines = piece
    tokens = []
    for digest, length in lines if lines is not None else ((None, len(mask(name))),):
        token = f"{_START}{os.urandom(12).hex()}{_END}"
        STAND_INS[token] = StandIn(name, digest, length, digests)
        tokens.append(token)
    return "\n".join(tokens)


def same(found: str, expected: str) -> bool:
    """Tell whether a string of the host equals one that may have stand-ins."""
    if not STAND_INS:
        return found == expected
    at = done = 0
    for token in _STAND_IN.finditer(expected):
        stand_in = STAND_INS.get(token.group())
        if not isinstance(stand_in, StandIn):
            continue
        text = expected[done : token.start()]
        if found[at : at + len(text)] != text:
            return False
        at += len(text)
        if not stand_in.matches(found[at : at + stand_in.length]):
            return False
        at, done = at + stand_in.length, token.end()
    return found[at:] == expected[done:]


def known(value: Any) -> bool:
    """Tell whether the ledger has the digests of all secrets in a value."""
    if isinstance(value, str):
        found = [stand_in for token, stand_in in STAND_INS.items() if token in value]
        return all(isinstance(stand_in, StandIn) and stand_in.digest is not None for stand_in in found)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return all(map(known, items))


def rendering(inner: Optional[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return what prepares a frame for the controller: it shows stand-ins as the masks of their secrets.

    :param inner: what masks the secrets of this run, if there are any
    """

    def render(value: Any) -> Any:
        shown = _rendered(value)
        return inner(shown) if inner is not None else shown

    return render


def _rendered(value: Any) -> Any:
    if isinstance(value, str):
        return _STAND_IN.sub(_shown, value) if _START in value else value
    if isinstance(value, dict):
        return {_rendered(key): _rendered(item) for key, item in value.items()}
    return [_rendered(item) for item in value] if isinstance(value, (list, tuple)) else value


def _shown(token: Any) -> str:
    stand_in = STAND_INS.get(token.group())
    return mask(stand_in.name) if isinstance(stand_in, StandIn) else str(token.group())
