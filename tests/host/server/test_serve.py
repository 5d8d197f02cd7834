"""`statecfg serve` as a command: where it listens, what it refuses, how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from statecfg.server import running
from tests import ROOT
from tests.host.command import statecfg
from tests.host.server import scenes
from tests.host.server.serving import project, serving
from tests.lab import processes

SLOW = """
import time


def wait(entity, arguments, context):
    open("began", "w").close()
    time.sleep(60)
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return project(tmp_path / "project")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Give a certificate for this machine, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    argv += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run([*argv, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    key.chmod(0o600)
    return certificate, key


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.1"])
def test_listening_to_other_machines_needs_tls(here: Path, bind: str) -> None:
    ran = statecfg("serve", "--port", "0", "--bind", bind, cwd=here, code=5)
    assert "SC0450" in ran.err and "--tls-cert" in ran.err


def test_wrong_tls_certificates_and_keys_are_refused(here: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    wrong = (
        ("--tls-cert", cert),
        ("--tls-cert", cert, "--tls-key", here / "none"),
        ("--tls-cert", key, "--tls-key", key),
    )
    for options in wrong:
        assert "SC0450" in statecfg("serve", "--port", "0", *options, cwd=here, code=5).err
    open_key = here / "open.pem"
    open_key.write_bytes(key.read_bytes())
    open_key.chmod(0o604)
    ran = statecfg("serve", "--port", "0", "--tls-cert", cert, "--tls-key", open_key, cwd=here, code=5)
    assert "every user" in ran.err


def test_a_port_in_use_is_reported(here: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = statecfg("serve", "--port", str(taken.getsockname()[1]), cwd=here, code=5)
    assert "SC0450" in ran.err and "--port" in ran.err


def test_server_serves_by_tls_under_allowed_host_names(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    options = ("--tls-cert", str(cert), "--tls-key", str(key), "--allow-host", "api.example.com")
    with serving(tmp_path / "tls", *options) as served:
        assert served.url.startswith("https://127.0.0.1:")
        headers = {"Authorization": f"Bearer {served.tokens['viewer']}"}
        trusting = ssl.create_default_context(cafile=cert)
        with httpx.Client(base_url=served.url, headers=headers, verify=trusting) as client:
            assert client.get("/statecfg/1.0/session").json()["role"] == "viewer"
            assert client.get("/statecfg/1.0/session", headers={"Host": "api.example.com"}).status_code == 200
            assert client.get("/statecfg/1.0/session", headers={"Host": "other.example.com"}).status_code == 403
            cookie = client.post("/login", data={"token": served.tokens["viewer"]}).headers["set-cookie"]
            assert "; Secure" in cookie


@pytest.mark.parametrize(
    ("bind", "names"),
    [("127.0.0.2", "127.0.0.1, 127.0.0.2, ::1, api.example.com, localhost"), ("0.0.0.0", "127.0.0.1, ::1, localhost")],
)
def test_serve_prints_the_host_names_that_it_accepts(
    here: Path, certificate: tuple[Path, Path], bind: str, names: str
) -> None:
    cert, key = certificate
    options = ["--allow-host", "api.example.com"] if "api" in names else ["--tls-cert", cert, "--tls-key", key]
    argv = [sys.executable, "-m", "statecfg", "serve", "--port", "0", "--bind", bind, *options]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STATECFG_STORE": str(here / "store.db")}
    process = subprocess.Popen(argv, cwd=here, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("Create a token: "):
                break
        lines = said.splitlines()
        assert f"It accepts these host names: {names}." in lines, said
        more = "If other machines use another name, allow it with --allow-host NAME."
        assert (more in lines) == (bind == "0.0.0.0"), said
    finally:
        processes.end(process)


def test_token_list_shows_the_user_without_the_secret(here: Path) -> None:
    secret = statecfg("serve", "token", "create", "ann", "--role", "author", "--org", "shop", cwd=here).out.strip()
    assert len(secret) == 43
    shown = statecfg("serve", "token", "list", cwd=here).out
    assert "ann" in shown and secret not in shown


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_server_ends_promptly_on_a_signal(tmp_path: Path, number: signal.Signals, code: int) -> None:
    root = tmp_path / "ends"
    (root / "behaviors").mkdir(parents=True)
    (root / "behaviors/slow.py").write_text(SLOW.replace('"began"', repr(str(root / "began"))))
    with serving(root) as served:
        with served.client() as client:
            of = scenes.made(client, "interfaces", scenes.interface())
            body = {"name": "wait", "execution": {"type": "Function", "id": "slow:wait"}}
            behavior = scenes.made(client, f"interfaces/{of['id']}/behaviors", body)
            hooks = {"PostCreate": behavior["id"]}
            kind = scenes.made(client, "entityTypes", scenes.entity_type("kept", (of["id"],), hooks=hooks))
            scenes.created(client, kind["id"], "one", {"foo": "x"})
            processes.wait_until((root / "began").exists, 60, "the hook to begin")
        began = time.monotonic()
        served.process.send_signal(number)
        _, errors = served.process.communicate(timeout=60)
        assert served.process.returncode == code, errors
        assert time.monotonic() - began < 14  # a worker gives up its task only after 15 s
        assert "Traceback" not in errors


def test_connections_without_a_complete_request_time_out() -> None:
    made: list[running.ServerConnection] = []
    waiting: list[bool] = []

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        waiting.append(made[-1].is_timed)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def said(data: bytes, patience: float) -> bytes:
        config = uvicorn.Config(answer, log_config=None, lifespan="off")

        def connection() -> running.ServerConnection:
            made.append(running.ServerConnection(config, ServerState(), {}))
            made[-1].timeout = patience
            return made[-1]

        server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(data)
        got = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        server.close()
        return got

    assert asyncio.run(said(b"", 0.02)) == b""
    assert asyncio.run(said(b"GET / HTTP/1.1\r\nHost:", 0.02)) == b""
    whole = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert asyncio.run(said(whole, 60)).startswith(b"HTTP/1.1 204 ")
    assert waiting == [False]  # there is no time limit while a request is answered
