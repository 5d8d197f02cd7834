"""Where hosts wait for permission."""

from __future__ import annotations

import threading

from statecfg.run.host.barrier import Barrier
from statecfg.run.host.gate import Gate, Pass


def test_many_hosts_that_wait_check_rarely() -> None:
    gate_pass = Pass(threading.Semaphore(0), Gate(2000), Barrier(None, ()))
    assert gate_pass.pause(2000) == 0.2, "it has a slot"
    gate_pass.wait()
    assert [gate_pass.pause(hosts) for hosts in (1, 100, 500, 2000)] == [0.2, 0.2, 1.0, 2.0]
    assert gate_pass.enter()
    assert gate_pass.pause(2000) == 0.2
