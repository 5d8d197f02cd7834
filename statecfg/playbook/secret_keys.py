"""The keys that open encrypted secrets, and what a run has opened so far."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from statecfg.graph.opaque import Secret
from statecfg.playbook import user_code
from statecfg.problems.frozen import dataclass

T = TypeVar("T")
DEFAULT = "default"  # Ansible's label of a password without one
PROMPT = "prompt"


class SecretFailure(NamedTuple):
    """Why a secret can't be read. It is a result and not an exception, so that no traceback has a frame with a value.

    :param detail: the cause, without any value
    :param help: what to do
    """

    detail: str
    help: str


class Opened:
    """Decrypted data. `repr` does not show it, and neither do lists of local variables.

    :param data: the bytes, or the lists and maps that were read from them
    """

    __slots__ = ("data",)

    def __init__(self, data: Any) -> None:
        self.data = data


class VaultId(NamedTuple):
    """A password of Ansible Vault.

    :param label: its label; "default" for none
    :param source: the absolute path of a file or program, or "prompt"
    """

    label: str
    source: str


@dataclass(frozen=True)
class Keys:
    """The keys that the user named.

    :param vault_ids: passwords of Ansible Vault
    :param age_identities: absolute paths of files with identities of age, or with private keys of SSH
    """

    vault_ids: tuple[VaultId, ...] = ()
    age_identities: tuple[str, ...] = ()

    @classmethod
    def of(cls, vault_ids: Iterable[str], age_identities: Iterable[str], base: Path) -> Keys:
        """Return the keys that a user wrote.

        :param vault_ids: each `LABEL@SOURCE` or `SOURCE`
        :param age_identities: paths
        :param base: the directory of relative paths
        """
        ids = []
        for text in vault_ids:
            label, at, source = text.rpartition("@") if text.endswith("@" + PROMPT) else text.partition("@")
            label, source = (label, source) if at else (DEFAULT, text)
            ids.append(VaultId(label or DEFAULT, source if source == PROMPT else _absolute(source, base)))
        return cls(tuple(ids), tuple(_absolute(path, base) for path in age_identities))

    def __add__(self, other: Keys) -> Keys:
        ids = dict.fromkeys((*self.vault_ids, *other.vault_ids))
        return Keys(tuple(ids), tuple(dict.fromkeys((*self.age_identities, *other.age_identities))))


NO_KEYS = Keys()


def _absolute(path: str, base: Path) -> str:
    return os.path.abspath(os.path.join(base, os.path.expanduser(path)))


class Ring:
    """Opens the secrets of one run. It asks for each password once, and opens each file once.

    :param keys: the keys of the user
    :ivar variables: the environment variables that secrets are in; programs don't get them
    """

    def __init__(self, keys: Keys = NO_KEYS) -> None:
        self.keys = keys
        self.variables: set[str] = set()
        self._results: dict[Hashable, Any] = {}
        self._lock = threading.RLock()  # several hosts may need the same password at the same time

    def once(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return the result of a function that is called only the first time."""
        with self._lock:
            if key not in self._results:
                self._results[key] = read()
            result: T = self._results[key]
            return result

    def ask(self, question: str) -> Secret | SecretFailure:
        """Ask the user on the terminal, once for each question. The answer is not shown while the user types.

        :param question: what is asked for, such as "password of the vault `prod`"
        """
        return self.once(("answer", question), lambda: _ask(question))


_CURRENT: ContextVar[Ring | None] = ContextVar("the ring of this run", default=None)


def opening(keys: Keys) -> contextlib.AbstractContextManager[Ring]:
    """Open the secrets that the block declares with one ring, also if their values are needed after the block."""
    return using(Ring(keys))


@contextlib.contextmanager
def using(ring: Ring) -> Iterator[Ring]:
    """Open the secrets that the block declares with a ring of an earlier block."""
    token = _CURRENT.set(ring)
    try:
        yield ring
    finally:
        _CURRENT.reset(token)


def current() -> Ring:
    """Return the ring of this run; outside of a run, a new one without keys."""
    return _CURRENT.get() or Ring()


def _ask(question: str) -> Secret | SecretFailure:
    if os.environ.get("CI") or not (os.isatty(0) and os.isatty(2)):
        return SecretFailure(f"can't ask for the {question}: stdin is not a terminal", "")
    from getpass import getpass

    with user_code.waiting():
        try:
            return Secret("password", getpass(f"{question[0].upper()}{question[1:]}: "))
        except EOFError:
            return SecretFailure(f"the {question} was not entered", "enter it")
