"""The controller's instructions to a host for one run."""

from __future__ import annotations

import os

from statecfg.remote.graph.names import Mode
from statecfg.remote.ledger.state import DIGESTS
from statecfg.remote.wire.frames import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from statecfg.remote.machine.digests import Digests

_REQUIRED = {"run", "mode", "who", "playbook", "types"}
_DEFAULTS = {
    **dict.fromkeys(("keep_going", "expect", "asks", "login", "prune", "partial", "verify_content", "yes"), False),
    **{key: {} for key in ("secrets", "node", "policy", "history", "units", "facts", "resume", "account", "restarts")},
    "claims": {},
    **dict.fromkeys(("hooks", "differs", "parts"), ()),
    "lock_timeout": 0.0,
    "ledger": "",
}


class Order:
    """The instructions for one run on this host. A later frame completes them (`with_json`). Instances are frozen.

    :ivar run: its id
    :ivar mode: one of `Mode`
    :ivar who: the user and the controller
    :ivar playbook: the owning playbook
    :ivar types: node type → module
    :ivar keep_going: after a failure, skip only what depends on it
    :ivar lock_timeout: seconds to wait for another run
    :ivar secrets: name → value
    :ivar expect: the controller sends the fingerprints of a saved plan
    :ivar asks: the user sees the plan before it is applied
    :ivar login: the controller can try a new login
    :ivar account: the login that must stay possible: `user`, `key`, `become`, and `module`, which checks that
    :ivar prune: remove orphans
    :ivar partial: the playbook defines more resources than the controller sent
    :ivar restarts: node of the playbook that the controller did not send → the sent nodes to whose change it reacts
    :ivar verify_content: read every file, even if its inode, size and times are unchanged
    :ivar yes: the run may remove more than half of the resources
    :ivar ledger: the lineage of the ledger that the controller knows
    :ivar node: the host, as data for hooks
    :ivar policy: the playbook, as data for hooks
    :ivar hooks: the hooks that may be called on this host
    :ivar history: in mode "history": `playbook`, `run`, `limit`, `node`, `owners`; in mode "reveal": `name`
    :ivar units: the units that may run hooks, and their content
    :ivar differs: the differences from a saved plan that the controller found
    :ivar facts: the facts to collect before the definition arrives: `names`, and the sources of the project's `own`
    :ivar resume: if the run continues after a reboot: `boot`, the id of the boot that it ended
    :ivar claims: with `partial`: node → what it owns, for the nodes of the playbook that were not sent
    :ivar parts: digests of the additional parts of the executor that this needs
    """

    if TYPE_CHECKING:
        run: str
        mode: str
        who: str
        playbook: str
        types: Dict[str, str]
        keep_going: bool
        lock_timeout: float
        secrets: Dict[str, str]
        expect: bool
        asks: bool
        login: bool
        account: Mapping[str, Any]
        prune: bool
        partial: bool
        restarts: Mapping[str, List[str]]
        verify_content: bool
        yes: bool
        ledger: str
        node: Mapping[str, Any]
        policy: Mapping[str, Any]
        hooks: List[Dict[str, Any]]
        history: Mapping[str, Any]
        units: Dict[str, Any]
        differs: List[str]
        facts: Dict[str, Any]
        resume: Dict[str, str]
        claims: Dict[str, List[str]]
        parts: List[str]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Order:
        """Return the instructions that the controller sent.

        :raises ProtocolError: if a key is unknown or missing
        """
        wrong = set(data).difference(_DEFAULTS, _REQUIRED) or _REQUIRED.difference(data)
        if wrong:
            raise ProtocolError(f"the order has unknown or missing keys: {', '.join(sorted(wrong))}")
        order = object.__new__(cls)
        order.__dict__.update(_DEFAULTS, **data)
        return order

    def with_json(self, data: Mapping[str, Any]) -> Order:
        """Return a copy with other values for some fields.

        :raises ProtocolError: as `from_json` does
        """
        return self.from_json(dict(self.__dict__, **data))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("an order can't be changed")

    @property
    def acting(self) -> bool:
        """Whether the run may change the host."""
        return self.mode in Mode.ACTING

    def digests(self, state_dir: str) -> Optional[Digests]:
        """Return the recorded digests of files; None for a run that neither uses them nor makes new ones."""
        folder = os.path.join(state_dir, DIGESTS)
        trusting = not self.verify_content and self.mode != Mode.VERIFY
        if not self.acting and not (trusting and os.path.isdir(folder)):
            return None
        from statecfg.remote.machine.digests import Digests

        return Digests(folder, self.playbook, self.partial, trusting)

    @property
    def has_units(self) -> bool:
        """Whether units of this host may run hooks."""
        return bool(self.units.get("units"))
