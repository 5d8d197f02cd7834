"""Open the ledger for a run: add the interrupted runs to it, and set it aside if it is another machine's."""

from __future__ import annotations

from statecfg.remote.ledger import journal, snapshot, state
from statecfg.remote.ledger.recorded import RecordedResources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

    from statecfg.remote.ledger.ledger import Ledger

SHOWN = 20  # maximum number of names in a warning


def recorded(state_dir: str, playbook: str, acting: bool, warnings: List[str], run: str = "") -> RecordedResources:
    """Return the records of a playbook in the ledger. Call this only if there is a ledger, or if the run is acting.

    :param state_dir: the state directory
    :param acting: the run may change the host, so a missing ledger is created
    :param warnings: receives warnings for the user
    :param run: the id of this run, which has a journal already if it continues after a reboot
    """
    result = RecordedResources(state_dir)
    journals = journal.interrupted_runs(state_dir)
    front = snapshot.read(state_dir, playbook, acting) if not journals else None
    if front is not None:
        result.ledger, result.lineage = front, front.meta("lineage")
        result.resources, result.debts = front.resources(), front.owed()
        result.complete = bool(front.meta(state.CLAIMS + playbook))
        return result
    from statecfg.remote.ledger.ledger import Ledger

    ledger: Optional[Ledger] = Ledger(state_dir, reading=not acting)
    if ledger is not None and ledger.foreign():
        ledger = _set_aside(ledger, acting, warnings)
    if ledger is None:
        return result
    interrupted = [left for left in journals if left[0] != run]
    cut_off = ledger.open_runs(interrupted)
    for run, account in cut_off:
        text = f"run {run} by {ledger.who(run) or 'an unknown user'} was cut off"
        if account.under_way:
            text += f"; unfinished: {', '.join(account.under_way)}"
        left = [name for name in account.left if name not in account.started]
        if left:
            text += f"; not done after its reboot: {', '.join(left[:SHOWN])}"
        warnings.append(text)
    last = "" if cut_off else ledger.interrupted(playbook)
    if last:
        warnings.append(f"the last run, {last}, lost its controller and was cut off")
    if acting:
        ledger.take_over(interrupted)
    elif cut_off:
        ledger.recall(cut_off)
    result.ledger, result.lineage = ledger, ledger.meta("lineage")
    result.resources, result.debts = ledger.resources(playbook), ledger.owed(playbook)
    result.complete = bool(ledger.meta(state.CLAIMS + playbook))
    return result


def _set_aside(ledger: Ledger, acting: bool, warnings: List[str]) -> Optional[Ledger]:
    """Ignore a ledger that came with a copied disk, as it describes another machine.

    :returns: a new ledger if this run changes the host, otherwise None
    """
    from statecfg.remote.ledger.ledger import Ledger

    text = f"the ledger belongs to another machine: {ledger.foreign()}. statecfg prunes nothing based on it"
    machine = ledger.meta("machine")
    ledger.close()
    if not acting:
        warnings.append(text)
        return None
    aside = state.set_aside(ledger.state_dir, machine[:12])
    warnings.append(f"{text}; statecfg moved it to {aside} and started a new one")
    return Ledger(ledger.state_dir)
