"""The records of one playbook in a ledger."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Mapping, Optional, Set

    from statecfg.remote.ledger.ledger import Ledger
    from statecfg.remote.ledger.records import Debt, Resource


class Recorded:
    """The records of one playbook in the ledger when a run begins.

    :param state_dir: the state directory
    :ivar ledger: None if there is none, or only one of another machine
    :ivar lineage: the ledger's lineage
    :ivar resources: the managed resources by name
    :ivar debts: the restarts that earlier runs owe
    :ivar secret_paths: path → names of the resources that put a secret there that this run may not know
    :ivar restarts: the nodes that owe a restart because of this run or an earlier one
    :ivar held: the resources of which it is not known whether they are still defined, each with the node that decides
    """

    def __init__(self, state_dir: str) -> None:
        self.state_dir = state_dir
        self.ledger: Optional[Ledger] = None
        self.lineage = ""
        self.resources: Dict[str, Resource] = {}
        self.debts: List[Debt] = []
        self.secret_paths: Dict[str, Set[str]] = {}
        self.restarts: Set[str] = set()
        self.held: Mapping[str, str] = {}
