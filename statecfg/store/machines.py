"""Which machine a host is: its machine id, its host key and the lineage of its ledger, not its name and address."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from statecfg.playbook.inventory import Inventory
from statecfg.remote.graph.names import Mode
from statecfg.store import hosts, runs
from statecfg.store.database import Store

MODES = (*Mode.ACTING, Mode.PLAN)


class MachineIdentity(NamedTuple):
    """What identifies a machine; "" if unknown. `peer` is its host key: type and fingerprint."""

    ledger: str = ""
    peer: str = ""
    address: str = ""
    machine_id: str = ""

    def is_same(self, other: MachineIdentity) -> bool:
        """Return whether this is certainly, or probably, the same machine as another one.

        Machines that were made from one image can have the same host key, and others the same machine id. A machine
        keeps its ledger if it gets a new host key. The address decides only if nothing else is known.
        """
        same_id = bool(self.machine_id) and self.machine_id == other.machine_id
        if self.machine_id and other.machine_id and not same_id:
            return False
        same_ledger = bool(self.ledger) and self.ledger == other.ledger
        if self.peer and self.peer.partition(" ")[0] == other.peer.partition(" ")[0]:
            return self.peer == other.peer or (same_id and same_ledger)
        if same_id or (self.ledger and other.ledger):
            return same_id or same_ledger
        return bool(self.address) and self.address == other.address


class Machines:
    """The machines of a run.

    :ivar named: host → machine, for the hosts that the playbook names
    :ivar met: host → machine, for the hosts that have planned in this run
    """

    def __init__(self) -> None:
        self.named: dict[str, MachineIdentity] = {}
        self.met: dict[str, MachineIdentity] = {}

    def refusal(self, host: str) -> str:
        """Return the reason why nothing of a host may be destroyed: the playbook names its machine by another name."""
        machine = self.met.get(host, MachineIdentity())
        names = sorted(name for name, other in self.named.items() if name != host and machine.is_same(other))
        if not names:
            return ""
        return (
            f"this machine is {names[0]}, which the playbook names: nothing was removed from it."
            f" Correct the address of {host} in the inventory, or remove {host} from it"
        )


def known(
    store: Store,
    names: Collection[str],
    file: str,
    inventory: Inventory | None,
    reports: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, MachineIdentity]:
    """Return host → machine, from the newest runs of a playbook.

    :param file: the playbook, relative to the project
    :param reports: the hosts' parts of the report of this run
    """
    found = {}
    records = hosts.named(store, names)
    with store.reading() as connection:
        for name in names:
            report = (reports or {}).get(name) or next(
                iter(runs.newest_reports(connection, store.project, name, file, MODES, 1)), {}
            )
            record = records.get(name)
            ledger = str(report.get("ledger") or (record.ledger if record is not None else ""))
            facts = report.get("facts") or (record.facts if record is not None else {})
            peer, machine_id = str(report.get("peer") or ""), str(facts.get("machine_id") or "")
            found[name] = MachineIdentity(ledger, peer, address(inventory, name), machine_id)
    return found


def address(inventory: Inventory | None, name: str) -> str:
    """Return address and port of a host in the inventory; "" if it does not contain the host."""
    if inventory is None or name not in inventory.hosts:
        return ""
    host = inventory.host(name)
    return " ".join(map(str, (host.address or name, host.port or "", host.proxy_jump or "", host.transport)))
