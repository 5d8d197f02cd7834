"""The stream of changes: one read of the store for all listeners, nothing lost, and only permitted topics."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.server import live
from statecfg.server.live import OPEN_TOPICS, Live
from statecfg.store import address, hosts, marks
from statecfg.store.database import Store
from tests.host.server.serving import Served


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Store]:
    with Store(address.parse(f"sqlite:///{tmp_path}/store.db", tmp_path)) as found:
        yield found


def parsed(data: bytes) -> tuple[str, Any]:
    name, said = data.decode().strip().split("\n")
    return name.removeprefix("event: "), json.loads(said.removeprefix("data: "))


def test_many_listeners_share_one_read_of_the_store(opened: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    read = marks.read

    def counted(store: Store, dead: float) -> dict[str, str]:
        looks.append(time.monotonic())
        return read(store, dead)

    monkeypatch.setattr(marks, "read", counted)

    async def listening(changes: Live, topics: frozenset[str] | None) -> tuple[str, Any]:
        stream = changes.follow(topics, lambda: False)
        assert parsed(await anext(stream))[0] == "hello"
        greeted.append(topics)
        found = parsed(await asyncio.wait_for(anext(stream), 30))
        await stream.aclose()
        return found

    greeted: list[object] = []

    async def all_of_them() -> list[tuple[str, Any]]:
        changes = Live(opened)
        every = [asyncio.create_task(listening(changes, None)) for _ in range(100)]
        while len(greeted) < 100:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(hosts.tag, opened, "web1", ["canary"])
        return await asyncio.gather(*every)

    begun = time.monotonic()
    assert asyncio.run(all_of_them()) == [("changed", {"topics": ["hosts"]})] * 100
    assert len(looks) <= 3 + (time.monotonic() - begun) / live.PERIOD


def test_only_administrators_hear_of_changed_hosts(opened: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BEAT", 1.5)

    async def heard() -> tuple[str, Any]:
        stream = Live(opened).follow(OPEN_TOPICS, lambda: False)
        assert parsed(await anext(stream))[0] == "hello"
        await asyncio.to_thread(hosts.tag, opened, "web1", ["canary"])
        found = parsed(await asyncio.wait_for(anext(stream), 30))
        await stream.aclose()
        return found

    assert asyncio.run(heard()) == ("beat", {})


def test_listeners_hear_when_the_store_fails_and_recovers(opened: Store) -> None:
    path = opened.address.path
    assert path is not None
    sound = path.read_bytes()

    async def heard(topics: frozenset[str] | None, changes: Live) -> list[tuple[str, Any]]:
        stream = changes.follow(topics, lambda: False)
        found = [parsed(await anext(stream))]
        path.write_bytes(b"no store at all" * 1000)
        found.append(parsed(await asyncio.wait_for(anext(stream), 30)))
        path.write_bytes(sound)
        found.append(parsed(await asyncio.wait_for(anext(stream), 30)))
        await stream.aclose()
        return found

    for topics in (None, OPEN_TOPICS):
        first, second, third = asyncio.run(heard(topics, Live(opened)))
        assert (first[0], second[0], third[0]) == ("hello", "trouble", "hello")
        assert (str(path) in second[1]["message"]) == (topics is None)


def test_a_stopping_server_ends_its_streams(served: Served) -> None:
    with served.client() as client, client.stream("GET", "/statecfg/1.0/live") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(lines) == "event: hello"
        begun = time.monotonic()
        served.process.terminate()
        assert list(lines)[-1:] in ([], [""])
        assert served.process.wait(60) == 0
        assert time.monotonic() - begun < 15  # the server gives up open requests only after 20 s
