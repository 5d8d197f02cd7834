"""Controllers and workers killed at random moments of applies: nothing is torn, lost or applied twice."""

from __future__ import annotations

from tests.each import each
from tests.host.run import crashes
from tests.lab import Host

# `script/soak engines` can try more.
POINTS = {"client": 1, "worker": 3}


@each("who", POINTS)
def test_the_next_run_converges_after_a_kill(light_host: Host, who: str) -> None:
    through = crashes.Through("processes:2")
    seen = crashes.at_random(light_host, f"/srv/{who}", who, POINTS[who], 20261124, through)
    if who == "worker":
        assert {one["status"] for one in seen} <= {"ok", "unknown"}
        assert any(one["connected"] for one in seen), "no kill hit the worker that had the host"
