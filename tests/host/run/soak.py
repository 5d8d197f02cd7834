"""Repeats the crash tests more often than a suite can: `python -m tests.host.run.soak WHAT [COUNT] [--seed N]`."""

from __future__ import annotations

import argparse
import collections
import contextlib
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests import lab
from tests.host.engines import cluster
from tests.host.resources import races
from tests.host.run import crashes, hook_crashes, lives, points, power, rig, truths
from tests.host.run.test_broken_links import cut_at, total
from tests.host.units import rings
from tests.lab import Host

Results = collections.Counter[str]
LANES = 6  # hosts of each kind on which `truth` runs at the same time: its runs mostly wait


def kills(host: Host, who: str, count: int, seed: int) -> Results:
    """Kill the process `who` during applies, at random moments."""
    seen = crashes.at_random(host, f"/srv/{who}", who, count, seed)
    found = Results({f"{who} killed": count})
    for each in seen:
        found[f"{who} killed: {each.get('status') or ('cut off' if each['old'] else 'over')}"] += 1
    found[f"{who} killed: ms until all was gone, at most"] = int(1000 * max(each["gone"] for each in seen))
    return found


def engines(host: Host, name: str, who: str, count: int, seed: int) -> Results:
    """Kill the process `who` during applies through workers of an engine, at random moments."""
    with contextlib.ExitStack() as stack:
        through = crashes.Through(name)
        if name == "dask":
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()), "cluster")
            running = stack.enter_context(cluster.running(directory, 2, tls=True))
            through = crashes.Through(running.url, lambda host, client: _replace(running, host), running.environment)
        seen = crashes.at_random(host, f"/srv/{name.partition(':')[0]}-{who}", who, count, seed, through)
    about = f"{who} killed with {name}"
    found = Results({about: count})
    for each in seen:
        found[f"{about}: {each.get('status') or ('cut off' if each['old'] else 'over')}"] += 1
        found[f"{about}: the host was repeated"] += each["repeated"]
        if who == "worker":
            found[f"{about}: it was connected to the host"] += each["connected"]
    return found


def _replace(running: cluster.Cluster, host: Host) -> bool:
    """Kill the worker of Dask that has the host, and start another one for the next run.

    :returns: whether the worker was connected to the host
    """
    connected = crashes.connection(host, [worker.pid for worker in running.workers])
    # Until it has connected, only the engine knows the worker: it gives the first host to the lowest address.
    first = min(running.workers, key=running.address)
    worker = next((worker for worker in running.workers if worker.pid in connected), first)
    worker.kill()
    worker.wait()
    running.workers.remove(worker)
    running.add_worker()
    running.await_workers()
    return bool(connected)


def lived(host: Host, who: str, count: int, seed: int) -> Results:
    """Kill the process `who` during applies that prune resources and fire hooks."""
    seen = lives.at_random(host, f"/srv/lived-{who}", who, count, seed)
    found = Results({f"{who} killed in a run with hooks": count})
    for each in seen:
        found[f"{who} killed in a run with hooks: {'cut off' if each['warned'] else 'over'}"] += 1
        found[f"{who} killed in a run with hooks: a restart was owed"] += each["owed"]
    found[f"{who} killed in a run with hooks: ms until all was gone, at most"] = int(
        1000 * max(each["gone"] for each in seen)
    )
    return found


def calls(host: Host, count: int, seed: int) -> Results:
    """Kill the executor at each of its file system calls, and repeat this for at least `count` calls."""
    found = Results()
    while found["calls killed at"] < count:
        for _, _, status in points.all_points(host, "/srv/points"):
            found["calls killed at"] += 1
            found[f"calls: {status}"] += 1
    return found


def cuts(host: Host, count: int, seed: int) -> Results:
    """Cut the connection after a random number of bytes, in either direction."""
    definition = rig.small_files("/srv/cuts", 30)
    rig.run(host, definition)
    found = Results()
    with tempfile.TemporaryDirectory() as directory:
        known_hosts = Path(directory, "known_hosts")
        sizes = dict(zip(("to", "from"), total(host, definition, known_hosts), strict=True))
        choose = random.Random(seed)
        for number in range(count):
            way = ("to", "from")[number % 2]
            # The last bytes only close a conversation that is already over.
            k = choose.randrange(200, sizes[way] - 2500)
            found[f"cut {way} the host: {cut_at(host, definition, known_hosts, k, way).host()['status']}"] += 1
    return found


def truth(host: Host, ways: list[str], about: str, count: int, seed: int) -> Results:
    """Cut the network or kill processes, and compare reports and histories with the host."""
    return truths.at_random(host, f"/srv/{about}", ways, count, seed)


def commands(host: Host, who: str, count: int, seed: int) -> Results:
    """Kill the command, the executor or a hook during applies with hooks of every kind, at random moments."""
    found = Results({f"{who} killed in an apply with hooks": count})
    with tempfile.TemporaryDirectory() as directory:
        for each in hook_crashes.at_random(host, Path(directory, "site"), who, count, seed):
            found[f"{who} killed in an apply with hooks: exit {each['code']}"] += 1
    return found


def power_cuts(host: Host, kind: str, count: int, seed: int) -> Results:
    """Cut the power at `count` moments of applies whose files are on a file system of this kind; recover each time."""
    found = Results()
    while found[f"{kind}: recovered"] < count:
        missing = count - found[f"{kind}: recovered"]
        disk = power.Disk(host, kind)
        found += power.cut(disk, len(power.VERSIONS) - 1, missing, missing, seed + missing)
        disk.discard()
    return found


def exchanged(host: Host, count: int, seed: int) -> Results:
    """Plan and apply nodes in directories that their owners exchange all the time, `count` times."""
    races.prepared(host)
    found = races.race(host, count, seed)
    ran = Results({f"a program of another user ran as {user}": number for user, number in found["ran"].items()})
    return Results(found["seen"]) + ran


def units(count: int, seed: int) -> None:
    """Kill hooks of units on four hosts at the same time, and sometimes a client or an executor."""
    machines = lab.light_hosts(4, prefix="rings")
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as directory:
            for what, number in sorted(rings.at_random(machines, Path(directory), count, seed).items()):
                print(f"{number:8}  {what}")
        print(f"{time.monotonic() - begun:8.0f}  seconds", flush=True)
    finally:
        lab.close_all()


def main() -> None:
    """Run the chosen tests, each on its own host, and print the results."""
    parser = argparse.ArgumentParser(prog="script/soak", description="Cuts applies off and checks what must hold.")
    kinds = ["kills", "engines", "hooks", "points", "cuts", "truth", "power", "places", "units", "all"]
    parser.add_argument("what", choices=kinds)
    parser.add_argument("count", nargs="?", type=int, default=1000, help="how many times each (default: 1000)")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    if given.what == "units":
        print(f"seed {given.seed}, {given.count} hooks to kill", flush=True)
        units(given.count, given.seed)
        return
    jobs: list[Callable[[Host], Results]] = []
    if given.what in ("kills", "all"):
        jobs += [lambda host, who=who: kills(host, who, given.count, given.seed) for who in crashes.KILLS]
    if given.what in ("engines", "all"):
        jobs += [
            lambda host, name=name, who=who: engines(host, name, who, given.count, given.seed)
            for name in ("processes:2", "dask")
            for who in crashes.ENGINE_KILLS
        ]
    if given.what in ("hooks", "all"):
        jobs += [lambda host, who=who: lived(host, who, given.count, given.seed) for who in ("client", "executor")]
        jobs += [lambda host, who=who: commands(host, who, given.count, given.seed) for who in hook_crashes.KILLS]
    if given.what in ("points", "all"):
        jobs.append(lambda host: calls(host, given.count, given.seed))
    if given.what in ("cuts", "all"):
        jobs.append(lambda host: cuts(host, given.count, given.seed))
    if given.what in ("truth", "all"):
        for lane in range(LANES):
            for about, ways in (("cuts", list(truths.CUTS)), ("kills", list(crashes.KILLS))):
                some = given.count // LANES + (lane < given.count % LANES)
                jobs.append(
                    lambda host, ways=ways, about=about, some=some, lane=lane: truth(
                        host, ways, about, some, given.seed + lane
                    )
                )
    if given.what in ("power", "all"):
        jobs += [lambda host, kind=kind: power_cuts(host, kind, given.count, given.seed) for kind in power.MOUNT]
    if given.what in ("places", "all"):
        jobs.append(lambda host: exchanged(host, given.count, given.seed))
    print(f"seed {given.seed}, {given.count} times each", flush=True)
    machines = lab.light_hosts(len(jobs), prefix="soak")
    failures: list[BaseException] = []

    def work(job: Callable[[Host], Results], host: Host) -> None:
        begun = time.monotonic()
        try:
            for what, number in sorted(job(host).items()):
                print(f"{number:8}  {what}")
            print(f"{time.monotonic() - begun:8.0f}  seconds", flush=True)
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(jobs, machines, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lab.close_all()
    for failure in failures:
        print("\n".join([repr(failure), *getattr(failure, "__notes__", [])]), file=sys.stderr)
    if failures:
        raise failures[0]


if __name__ == "__main__":
    main()
