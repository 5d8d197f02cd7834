"""Hooks as the controller orders them: when a hook is called, what its failure means, and its files."""

from __future__ import annotations

import os

from statecfg.remote.graph.on_failure import RULES
from statecfg.remote.ledger import state
from statecfg.remote.machine import durable
from statecfg.remote.wire.frames import decode_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

    from statecfg.remote.graph.model import Blob, HostNode
    from statecfg.remote.graph.on_failure import FailureRule
    from statecfg.remote.hooks.configuration import Configuration, Schema


class HookFiles:
    """The files of a hook's type on this host. Each version of them has its own directory.

    :param type: the name of the type
    :param digest: of the files
    :param files: name → mode and content, as the controller sent them
    """

    def __init__(self, type: str, digest: str, files: Mapping[str, Tuple[int, Any]]) -> None:
        self.type, self.digest, self.files = type, digest, files
        self.missing: Dict[str, Tuple[int, Blob]] = {}  # name → mode and content, for those to install

    def folder(self, state_dir: str) -> str:
        """Return the directory of the files."""
        return os.path.join(state_dir, state.HOOKS, self.digest, self.type + ".hook")

    def find_missing(self, state_dir: str, blobs: Dict[str, Blob]) -> List[Blob]:
        """Return the content of the files if this host lacks them.

        :param blobs: all content of the run, by digest
        """
        if not os.path.isdir(self.folder(state_dir)):
            self.missing = {name: (mode, decode_value(body, blobs)) for name, (mode, body) in self.files.items()}
        return [blob for _, blob in self.missing.values()]

    def install(self, state_dir: str) -> None:
        """Install the missing files, all or none.

        :raises OSError: a file can't be stored
        """
        folder = self.folder(state_dir)
        if not self.missing or os.path.isdir(folder):
            return
        trial = f"{os.path.dirname(folder)}.{os.getpid()}"
        for name, (mode, blob) in sorted(self.missing.items()):
            path = os.path.join(trial, name)
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            durable.create(path, blob.chunks(), mode)
        os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
        os.rename(trial, folder)


class HookOrder:
    """A hook that may be called on a host. Instances are frozen.

    :param select: `types`, `names` and `tags` of nodes; an empty list selects all
    :param where: "controller" or "host"; the parameters after `deadline` exist for hooks that run on the host
    :param on_failure: the failure rule
    :param deadline: of one call, in seconds
    :param id: number of the hook in the store; None if it is not there
    :param files: name → mode and content, of the hook's type
    :param digest: of these files
    """

    name: str
    order: int
    events: Sequence[str]
    select: Mapping[str, Sequence[str]]
    on_failure: FailureRule
    deadline: float
    where: str
    id: Optional[int]
    schema: Schema
    configuration: Configuration
    files: HookFiles

    def __init__(
        self,
        name: str,
        type: str,
        order: int,
        events: Sequence[str],
        select: Mapping[str, Sequence[str]],
        on_failure: str,
        deadline: float,
        where: str,
        id: Optional[int] = None,
        digest: str = "",
        files: Optional[Mapping[str, Tuple[int, Any]]] = None,
        schema: Optional[Schema] = None,
        configuration: Optional[Configuration] = None,
    ) -> None:
        self.__dict__.update(
            name=name, order=order, events=events, select=select, on_failure=RULES[on_failure], deadline=deadline,
            where=where, id=id, schema=schema or {}, configuration=configuration or {},
            files=HookFiles(type, digest, files or {}),
        )  # fmt: skip

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a hook's order can't be changed")

    @classmethod
    def from_json(cls, order: Mapping[str, Any]) -> HookOrder:
        """Return the hook that the controller describes.

        :raises TypeError: a key is unknown or missing
        """
        return cls(**order)

    def fires(self, event: str, node: HostNode) -> bool:
        """Return whether the hook is called for an event of a node."""
        types, names, tags = (self.select.get(key) or () for key in ("types", "names", "tags"))
        if event not in self.events or (types and node.type not in types):
            return False
        if names:
            from fnmatch import fnmatchcase

            if not any(fnmatchcase(node.provides, pattern) for pattern in names):
                return False
        return not tags or bool(set(tags).intersection(node.options.get("tags") or ()))

    def missing_files(self, state_dir: str, blobs: Dict[str, Blob]) -> List[Blob]:
        """Return the files that this host lacks.

        :param blobs: all content of the run, by digest
        """
        return self.files.find_missing(state_dir, blobs) if self.where == "host" else []

    def install(self, state_dir: str) -> None:
        """Install the missing files.

        :raises StateError: a file can't be stored
        """
        try:
            self.files.install(state_dir)
        except OSError as problem:
            text = "the files of the hook %s can't be stored in %s: %s"
            raise state.StateError(text % (self.name, self.files.folder(state_dir), problem.strerror)) from None


def in_order(orders: Sequence[Mapping[str, Any]]) -> List[HookOrder]:
    """Return the hooks that may be called on a host, in their order."""
    return sorted((HookOrder.from_json(order) for order in orders), key=lambda hook: (hook.order, hook.name))
