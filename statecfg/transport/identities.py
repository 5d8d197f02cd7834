"""Which keys we offer a host, and in which order: as ssh does, but never more than a host tolerates."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from statecfg.remote.graph.errors import StatecfgError

from . import key_files
from .route import Hop

# sshd's MaxAuthTries is 6, and the last failure ends the connection.
MAX_OFFERS = 5

K = TypeVar("K")


class KeyLocked(StatecfgError):
    """A private key file that needs a passphrase."""


class KeyUnusable(StatecfgError):
    """A private key file that can't be used; the text says why."""


class Identities(Generic[K]):
    """The keys for one hop; `problems` says which files could not be used, and why.

    Parameters: `hop`; `load` reads a private key file (raises KeyLocked, KeyUnusable, OSError); `agent` returns the
    agent's keys as (public blob, key) pairs.
    """

    def __init__(
        self, hop: Hop, load: Callable[[str], tuple[bytes, K]], agent: Callable[[], list[tuple[bytes, K]]]
    ) -> None:
        self.hop = hop
        self.load = load
        self.agent = agent
        self.problems: list[str] = []
        self.offered: list[str] = []

    def offers(self) -> Iterator[K]:
        """Yield the keys to offer, each once: configured files (by the agent if it has them), then the agent's."""
        held: dict[bytes, K] | None = None
        seen: set[bytes] = set()
        for path in self.hop.keys:
            try:
                why = key_files.unusable(path)
                if why:
                    self.problems.append(f"{path} was skipped: {why}")
                    continue
                blob, key = self.load(path)
            except KeyLocked:
                held = self._agent_keys() if held is None else held
                blob = public_blob(path) or b""
                if blob not in held:
                    self.problems.append(f"{path} is encrypted and no agent holds it (run: ssh-add {path})")
                    continue
                key = held[blob]
            except FileNotFoundError:
                continue
            except (KeyUnusable, OSError) as error:
                self.problems.append(f"{path}: {getattr(error, 'strerror', None) or error}")
                continue
            if blob not in seen:
                seen.add(blob)
                yield self._offer(path, key)
        if not self.hop.only_these_keys:
            held = self._agent_keys() if held is None else held
            for blob, key in held.items():
                if blob not in seen:
                    yield self._offer("an agent's key", key)

    def _offer(self, label: str, key: K) -> K:
        self.offered.append(label)
        return key

    def _agent_keys(self) -> dict[bytes, K]:
        return dict(self.agent()) if self.hop.use_agent else {}


def public_blob(path: str) -> bytes | None:
    """Return the key in the `.pub` file beside a private key, or None."""
    if not os.path.exists(path + ".pub"):
        return None
    with open(path + ".pub", encoding="utf-8", errors="replace") as file:
        words = file.read().split()
    try:
        return base64.b64decode(words[1], validate=True)
    except (IndexError, binascii.Error, ValueError):
        return None
