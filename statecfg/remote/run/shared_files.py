"""Parts of files, such as lines and keys, that other playbooks manage: whether a node leaves them as defined.

The check of the other node decides, before and after the actions. So this holds for all node types that edit a part of
a file, and several playbooks can edit separate parts of one file.
"""

from __future__ import annotations

from contextlib import contextmanager

from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.claims import OWNED, paths
from statecfg.remote.ledger.records import StoredDefinition
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.guard import reading_only
from statecfg.remote.machine.overlay import Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Sequence


class Owner:
    """A node that is not part of this run, and what it owns.

    :param playbook: "" for a node of this playbook
    :param digest: of its definition; "" if unknown
    """

    __slots__ = ("claims", "digest", "name", "playbook")

    def __init__(self, playbook: str, name: str, digest: str, claims: Sequence[str]) -> None:
        self.playbook, self.name, self.digest = playbook, name, digest
        self.claims = [claim[1:] if claim[:1] == OWNED else claim for claim in claims]

    def __str__(self) -> str:
        return f"{self.name} of {self.playbook}" if self.playbook else f"{self.name}, which this run leaves out,"


class SharedFiles:
    """The nodes of other playbooks that edit the same files as nodes of this run.

    :param owners: the nodes of other playbooks
    :param definition: returns the definition of one in the ledger: `f(playbook, name)`
    """

    def __init__(self, owners: Iterable[Owner], definition: Callable[[str, str], StoredDefinition]) -> None:
        self.definition = definition
        self._by_file: Dict[str, List[Owner]] = {}
        self._nodes: Dict[Owner, HostNode] = {}
        self._modules: Dict[str, str] = {}
        for owner in owners:
            for path in edited(owner.claims):
                self._by_file.setdefault(path, []).append(owner)

    def beside(self, claims: Sequence[str]) -> Dict[Owner, str]:
        """Return owner → file, for the owners of parts of the files of which a node with these claims edits a part."""
        if not self._by_file:
            return {}
        return {owner: path for path in edited(claims) for owner in self._by_file.get(path, ())}

    def types(self, claims: Iterable[Sequence[str]]) -> Dict[str, str]:
        """Return type → module, for the owners beside nodes with these claims."""
        names = {self._node(owner).type for some in claims for owner in self.beside(some)}
        return {name: self._modules[name] for name in sorted(names)}

    def sound(self, owners: Mapping[Owner, str], machine: Any) -> Dict[Owner, str]:
        """Return those of `beside` that are certainly as defined."""
        return {owner: path for owner, path in owners.items() if self._is_sound(owner, machine)}

    def _is_sound(self, owner: Owner, machine: Any) -> bool:
        node = self._node(owner)
        node_type = REGISTRY.get(node.type)
        if node_type is None or secretive(node.attrs):  # nothing is known without the type or the secret
            return False
        function: Any = node_type.function
        code = function.__code__ if function is not None else None
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code is not None else ():
            node.attrs.setdefault(name, None)  # the ledger leaves out attributes without a value
        with aside(machine), reading_only():
            try:
                found = node_type.run_check(node, {}, [], machine)
            except (Exception, SystemExit):  # the host has changed, or the ledger lacks the content: its own run tells
                return False
        return not getattr(found, "steps", found)

    def _node(self, owner: Owner) -> HostNode:
        node = self._nodes.get(owner)
        if node is None:
            definition = self.definition(owner.playbook, owner.name)
            node = self._nodes[owner] = HostNode(owner.name, definition.type, (), dict(definition.attrs))
            self._modules[definition.type] = definition.module
        return node


def edited(claims: Iterable[str]) -> Iterable[str]:
    """Return the files of which a node with these claims edits, or removes, a part."""
    return dict.fromkeys(paths(claim for claim in claims if not claim.startswith(("path:", "inside:"))))


@contextmanager
def aside(machine: Any) -> Iterator[None]:
    """Read the machine within the turn of a node without leaving a trace in it."""
    trace, memo, beside = machine.trace, machine.memo, machine.beside
    machine.trace, machine.memo, machine.beside = Trace(), {}, ()
    try:
        yield
    finally:
        machine.trace, machine.memo, machine.beside = trace, memo, beside
