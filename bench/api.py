"""Measure the duration of API calls with many entities: list, filter, read and create. One client makes all calls.

    .venv/bin/python bench/api.py [--entities 10000] [--calls 200]

The output gives the median and the 95th percentile of each call in milliseconds, over HTTP on loopback, with SQLite.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import httpx

from bench import figures
from tests.host.server import scenes
from tests.host.server.scenes import API
from tests.host.server.serving import serving

LARGEST = 50.0  # limit for the medians in ms


def measured(calls: int, call: Callable[[int], httpx.Response]) -> list[float]:
    """Return the duration of each call in milliseconds."""
    took = []
    for number in range(calls):
        began = time.perf_counter()
        call(number).raise_for_status()
        took.append(1000 * (time.perf_counter() - began))
    return took


def filled(client: httpx.Client, entities: int) -> str:
    """Create a type with entities. Return its id."""
    type_id: str = scenes.made(client, "entityTypes", scenes.entity_type("bench"))["id"]
    for number in range(entities):
        body = {"name": f"e{number}", "entity": {"foo": f"v{number % 100}", "size": number}}
        client.post(f"{API}/entityTypes/{type_id}?resolveEntity=true", json=body).raise_for_status()
    return type_id


def main() -> int:
    """Measure and print all calls. Return 1 if a median is too large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=200)
    given = parser.parse_args()
    bars, fixed = figures.Bars(), figures.fixed()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "project") as served,
        served.client() as client,
    ):
        began = time.perf_counter()
        type_id = filled(client, given.entities)
        print(f"{given.entities} entities made in {time.perf_counter() - began:.1f} s")
        of_type = f"{API}/entities/types/acme/bench/1.0.0"
        middle = given.entities // 2
        one = client.get(of_type, params={"filter": f"name==e{middle}"}).json()["values"][0]["id"]
        calls: dict[str, Callable[[int], httpx.Response]] = {
            "list": lambda _: client.get(of_type, params={"sortAsc": "name"}),
            "list, a page in the middle": lambda _: client.get(
                of_type, params={"page": middle // 25, "sortAsc": "name"}
            ),
            "filter by name": lambda n: client.get(of_type, params={"filter": f"name==e{n}"}),
            "filter by state": lambda _: client.get(of_type, params={"filter": "(entityState==IN_DELETION)"}),
            "filter by content": lambda n: client.get(of_type, params={"filter": f"entity.foo==v{n % 100}"}),
            "read": lambda _: client.get(f"{API}/entities/{one}"),
            "create": lambda n: client.post(
                f"{API}/entityTypes/{type_id}?resolveEntity=true", json={"name": f"new{n}", "entity": {"foo": "x"}}
            ),
        }
        for name, call in calls.items():
            took = sorted(measured(given.calls, call))
            median = statistics.median(took)
            loops = figures.loops(median / 1000, fixed)
            row = f"{name:28} median {median:6.1f} ms, {loops:4.2f} loops   95 % {took[int(len(took) * 0.95)]:6.1f} ms"
            print(f"{row}   ({bars.at_most(median, LARGEST, 'ms')})", flush=True)
    return bars.status


if __name__ == "__main__":
    sys.exit(main())
