"""Limits on what can hold the server up: bodies that are slow to parse, and answers that nobody reads."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from statecfg.entities.problems import ApiError
from statecfg.server import bodies, running


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
