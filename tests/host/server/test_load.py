"""Many clients at once: each one gets what it asked for, and nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import httpx
import pytest

from tests.host.server import scenes
from tests.host.server.scenes import API
from tests.host.server.serving import Served

CLIENTS = 200
# Limits for all clients together: the server's CPU time, which other load doesn't change, and elapsed time.
PROCESSOR_SECONDS, SECONDS = 6.0, 60.0


@pytest.fixture(scope="module")
def kind(served: Served) -> str:
    with served.client() as client:
        return str(scenes.made(client, "entityTypes", scenes.entity_type("load"))["id"])


def processor_time(served: Served) -> float:
    """Return how many seconds of a processor the server has used."""
    fields = Path(f"/proc/{served.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def one(served: Served, kind: str, number: int) -> tuple[str, str]:
    """Create and read an entity as a separate client. Return its id and name."""
    headers = {"Authorization": f"Bearer {served.tokens['administrator']}", "Accept": "application/json;version=37.1"}
    async with httpx.AsyncClient(base_url=served.url, headers=headers, timeout=60, verify=False) as client:
        body = {"name": f"n{number}", "entity": {"foo": "x", "size": number}}
        answer = await client.post(f"{API}/entityTypes/{kind}?resolveEntity=true", json=body)
        assert answer.status_code == 202, answer.text
        task = (await client.get(answer.headers["location"])).json()
        entity = (await client.get(f"{API}/entities/{task['owner']['id']}")).json()
        assert (entity["name"], entity["entity"], entity["entityState"]) == (body["name"], body["entity"], "RESOLVED")
        return entity["id"], entity["name"]


async def all_at_once(served: Served, kind: str) -> list[tuple[str, str]]:
    return await asyncio.gather(*(one(served, kind, number) for number in range(CLIENTS)))


def test_two_hundred_concurrent_clients_lose_no_entity(served: Served, kind: str) -> None:
    began, used = time.monotonic(), processor_time(served)
    made = asyncio.run(all_at_once(served, kind))
    took, used = time.monotonic() - began, processor_time(served) - used
    assert len(set(made)) == CLIENTS
    with served.client() as client:
        path = f"{API}/entities/types/acme/load/1.0.0"
        listed = {
            (each["id"], each["name"])
            for page in (1, 2)
            for each in client.get(path, params={"page": page, "pageSize": 128}).json()["values"]
        }
        assert listed == set(made)
        assert client.get(path).json()["resultTotal"] == CLIENTS
    assert used < PROCESSOR_SECONDS and took < SECONDS, f"{CLIENTS} clients: {used:.1f} s of {took:.1f} s"


def test_entity_pages_are_complete_during_concurrent_creation(served: Served, kind: str) -> None:
    async def read_and_write() -> None:
        headers = {"Authorization": f"Bearer {served.tokens['administrator']}"}
        async with httpx.AsyncClient(base_url=served.url, headers=headers, timeout=60, verify=False) as client:
            writing = [asyncio.create_task(one(served, kind, number)) for number in range(20)]
            while not all(task.done() for task in writing):
                page = (await client.get(f"{API}/entities?pageSize=128")).json()
                assert len(page["values"]) == min(128, page["resultTotal"])
            await asyncio.gather(*writing)

    asyncio.run(read_and_write())
