"""Limits on what can hold the server up: bodies that are slow to parse, and answers that nobody reads."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from statecfg.entities.model import Principal
from statecfg.entities.problems import ApiError
from statecfg.server import app, bodies, routing, running


def test_an_unterminated_json_string_is_rejected_quickly() -> None:
    """Reading again from each quote would take hours for a body of 1 MiB. Sending one needs no login."""
    begun = time.monotonic()
    with pytest.raises(ApiError, match="Unterminated string"):
        bodies.parsed(b'"' + b'\\"' * (bodies.LARGEST // 2 - 1), "application/json")
    assert time.monotonic() - begun < 60
    with pytest.raises(ApiError, match="nests more than 64 levels"):
        bodies.parsed(b'{"a\\"[": ' + b"[" * 64, "application/json")
    assert bodies.parsed(b'["' + b"[" * 100 + b'"]', "application/json") == ["[" * 100]


def test_an_answer_that_the_client_never_reads_times_out() -> None:
    async def read_nothing() -> None:
        ended = asyncio.Event()

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": bytes(32 << 20), "more_body": True})
            await send({"type": "http.response.body"})  # waits until the client reads or the connection ends
            ended.set()

        config = uvicorn.Config(answer, log_config=None, lifespan="off")

        def connection() -> running.ServerConnection:
            made = running.ServerConnection(config, ServerState(), {})
            made.timeout = 0.05
            return made

        server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(ended.wait(), 60)
        writer.close()
        server.close()

    asyncio.run(read_nothing())


def test_one_caller_does_not_occupy_all_threads() -> None:
    """A tenant may send many slow requests at once. Others are served meanwhile."""
    assert routing.SHARE * 2 <= app.THREADS
    ann, ben = Principal("ann", "acme", "author"), Principal("ann", "other", "author")

    async def requests() -> None:
        turns, ended = routing.Turns(), asyncio.Event()
        inside: list[Principal | None] = []

        async def request(caller: Principal | None) -> None:
            async with turns.of(caller):
                inside.append(caller)
                await ended.wait()

        running_now = [asyncio.create_task(request(ann)) for _ in range(50)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(inside) == routing.SHARE
        running_now += [asyncio.create_task(request(caller)) for caller in (ben, None)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert inside[routing.SHARE :] == [ben, None]
        ended.set()
        await asyncio.gather(*running_now)
        assert len(inside) == 52

    asyncio.run(requests())
