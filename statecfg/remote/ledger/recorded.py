"""The records of one playbook in a ledger."""

from __future__ import annotations

from typing import Container, Dict, List, Mapping, Optional, Set, Union

from statecfg.remote.ledger.ledger import Ledger
from statecfg.remote.ledger.records import Debt, Resource, StoredDefinition
from statecfg.remote.ledger.snapshot import Front
from statecfg.remote.machine.digests import Digests


class RecordedResources:
    """The records of one playbook in the ledger when a run begins.

    :param state_dir: the state directory
    :ivar ledger: the ledger or its snapshot; None if there is none, or only one of another machine
    :ivar digests: the recorded digests of files; None if this run does not need them
    :ivar lineage: the ledger's lineage
    :ivar resources: the managed resources by name
    :ivar debts: the restarts that earlier runs owe
    :ivar secret_paths: path → names of the resources that put a secret there that this run may not know
    :ivar restarts: the nodes that owe a restart because of this run or an earlier one
    :ivar complete: the records contain what their nodes own, as versions since 0.5.0 write them
    :ivar held: the resources of which it is not known whether they are still defined, each with the node that decides
    """

    def __init__(self, state_dir: str) -> None:
        self.state_dir = state_dir
        self.ledger: Optional[Union[Ledger, Front]] = None
        self.digests: Optional[Digests] = None
        self.lineage = ""
        self.resources: Dict[str, Resource] = {}
        self.debts: List[Debt] = []
        self.secret_paths: Dict[str, Set[str]] = {}
        self.restarts: Set[str] = set()
        self.held: Mapping[str, str] = {}
        self.complete = False

    def opened(self) -> Ledger:
        """Return the ledger with its database open, for a run that writes it or reads more than the snapshot has."""
        assert self.ledger is not None
        self.ledger = ledger = self.ledger.opened()
        return ledger

    def elsewhere(self, playbook: str, name: str) -> StoredDefinition:
        """Return the definition of a resource of another playbook."""
        return self.opened().resources(playbook, name)[name].definition

    def note_secrets(self, playbook: str, names: Mapping[str, str], known: Container[str]) -> None:
        """Add the paths of secrets that this run may not know to `secret_paths`.

        :param playbook: the playbook of the run
        :param names: former name → name in this run
        :param known: the resources of this playbook whose secrets this run knows
        """
        for owner, name, attrs, memory in self.ledger.with_secrets() if self.ledger is not None else ():
            if owner != playbook or name not in known:
                own = names.get(name, name) if owner == playbook else ""
                for path in (attrs.get("path"), memory.get("path")):
                    if isinstance(path, str):
                        self.secret_paths.setdefault(path, set()).add(own)

    def close(self) -> None:
        """Close the ledger at the end of a run."""
        if self.ledger is not None:
            from statecfg.remote.ledger.snapshot import finish

            finish(self.ledger)
