"""Choose the keys to offer a host, in the order of ssh, but never more than a host tolerates."""

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
    """A private key file needs a passphrase."""


class KeyUnusable(StatecfgError):
    """A private key file can't be used. The text is the reason."""


class Identities(Generic[K]):
    """The keys for one hop.

    :param load: reads a private key file; raises KeyLocked, KeyUnusable or OSError
    :param agent: returns the agent's keys as (public blob, key) pairs
    :ivar problems: the files that could not be used, with the reasons
    :ivar offered: the keys that were offered
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
        """Yield each key to offer once: configured files (through the agent if encrypted), then the agent's keys."""
        agent_keys: dict[bytes, K] | None = None
        seen: set[bytes] = set()
        for path in self.hop.keys:
            try:
                why = key_files.unusable(path)
                if why:
                    self.problems.append(f"{path} was skipped: {why}")
                    continue
                blob, key = self.load(path)
            except KeyLocked:
                agent_keys = self._agent_keys() if agent_keys is None else agent_keys
                blob = public_blob(path) or b""
                if blob not in agent_keys:
                    self.problems.append(f"{path} is encrypted and no agent has it (run: ssh-add {path})")
                    continue
                key = agent_keys[blob]
            except FileNotFoundError:
                continue
            except (KeyUnusable, OSError) as error:
                self.problems.append(f"{path}: {getattr(error, 'strerror', None) or error}")
                continue
            if blob not in seen:
                seen.add(blob)
                yield self._offer(path, key)
        if not self.hop.only_these_keys:
            agent_keys = self._agent_keys() if agent_keys is None else agent_keys
            for blob, key in agent_keys.items():
                if blob not in seen:
                    yield self._offer("an agent's key", key)

    def _offer(self, label: str, key: K) -> K:
        self.offered.append(label)
        return key

    def _agent_keys(self) -> dict[bytes, K]:
        return dict(self.agent()) if self.hop.use_agent else {}


def public_blob(path: str) -> bytes | None:
    """Return the public key from the `.pub` file of a private key; None if there is none."""
    if not os.path.exists(path + ".pub"):
        return None
    with open(path + ".pub", encoding="utf-8", errors="replace") as file:
        words = file.read().split()
    try:
        return base64.b64decode(words[1], validate=True)
    except (IndexError, binascii.Error, ValueError):
        return None
