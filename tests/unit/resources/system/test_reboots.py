"""What a reboot may change is not known before it."""

from __future__ import annotations

import pytest

from statecfg.remote.graph.model import Unknown
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.resources.system import reboots

NODE = "reboot:kernel"


@pytest.mark.parametrize("facet", reboots.FACETS)
@pytest.mark.parametrize("existing", [True, False])
def test_nodes_after_a_reboot_do_not_know_the_kernel_and_its_processes(facet: str, existing: bool) -> None:
    machine = MemoryMachine(facets={facet: {"/srv": {"source": "tmpfs"}} if existing else {}})
    machine.turn(NODE)
    assert reboots.reboot("it is due", 60.0).perform(machine)["status"] == "ok"
    machine.turn("mount:/srv", frozenset([NODE]))
    with pytest.raises(Unknown):
        machine.entry(facet, "/srv")
    with pytest.raises(Unknown):
        machine.facet(facet)
    machine.turn("mount:/other")
    assert machine.entry(facet, "/srv") == ({"source": "tmpfs"} if existing else None)
