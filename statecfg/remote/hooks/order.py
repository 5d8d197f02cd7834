"""Hooks as the controller orders them: when a hook is called, what its failure means, and its files."""

from __future__ import annotations

import os

from statecfg.remote.hooks.on_failure import RULES
from statecfg.remote.ledger import state
from statecfg.remote.machine import durable
from statecfg.remote.wire.frames import decode_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

    from statecfg.remote.graph.model import Blob, Node
    from statecfg.remote.hooks.configuration import Configuration, Schema


class HookOrder:
    """A hook that may be called on a host.

    :param select: `types`, `names` and `tags` of nodes; an empty list selects all
    :param where: "controller" or "host"; the parameters after `deadline` exist for hooks that run on the host
    :param on_failure: the failure rule
    :param deadline: of one call, in seconds
    :param id: number of the hook in the store; None if it is not there
    :param files: name → mode and content, of the hook's type
    :param digest: of these files
    """

    __slots__ = (
        *("configuration", "deadline", "decoded", "digest", "events", "files", "id"),
        *("name", "on_failure", "order", "schema", "select", "type", "where"),
    )

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
        self.name, self.type, self.order, self.events, self.select = name, type, order, events, select
        self.on_failure, self.deadline, self.where = RULES[on_failure], deadline, where
        self.id, self.digest, self.files = id, digest, files or {}
        self.schema, self.configuration = schema or {}, configuration or {}
        self.decoded: Dict[str, Tuple[int, Blob]] = {}

    @classmethod
    def from_json(cls, order: Mapping[str, Any]) -> HookOrder:
        """Return the hook that the controller describes.

        :raises TypeError: a key is unknown or missing
        """
        return cls(**order)

    def fires(self, event: str, node: Node) -> bool:
        """Return whether the hook is called for an event of a node."""
        types, names, tags = (self.select.get(key) or () for key in ("types", "names", "tags"))
        if event not in self.events or (types and node.type not in types):
            return False
        if names:
            from fnmatch import fnmatchcase

            if not any(fnmatchcase(node.provides, pattern) for pattern in names):
                return False
        return not tags or bool(set(tags).intersection(node.options.get("tags") or ()))

    def folder(self, state_dir: str) -> str:
        """Return the directory of the hook's files on this host. Each version of the files has its own."""
        return os.path.join(state_dir, state.HOOKS, self.digest, self.type + ".hook")

    def missing(self, state_dir: str, blobs: Dict[str, Blob]) -> List[Blob]:
        """Return the files that this host lacks.

        :param blobs: all content of the run, by digest
        """
        if self.where != "host" or os.path.isdir(self.folder(state_dir)):
            return []
        self.decoded = {name: (mode, decode_value(body, blobs)) for name, (mode, body) in self.files.items()}
        return [blob for _, blob in self.decoded.values()]

    def install(self, state_dir: str) -> None:
        """Install the missing files, all or none.

        :raises StateError: a file can't be stored
        """
        folder = self.folder(state_dir)
        if not self.decoded or os.path.isdir(folder):
            return
        trial = "%s.%d" % (os.path.dirname(folder), os.getpid())
        try:
            for name, (mode, blob) in sorted(self.decoded.items()):
                path = os.path.join(trial, name)
                os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
                durable.create(path, blob.chunks(), mode)
            os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
            os.rename(trial, folder)
        except OSError as problem:
            text = "the files of the hook %s can't be stored in %s: %s"
            raise state.StateError(text % (self.name, folder, problem.strerror)) from None
