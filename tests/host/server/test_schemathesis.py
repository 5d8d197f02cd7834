"""The server follows the OpenAPI document that it serves: schemathesis sends it generated requests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.host.server import scenes
from tests.host.server.serving import Served

SECONDS = 10


def test_schemathesis_finds_no_api_violations(served: Served, tmp_path: Path) -> None:
    with served.client() as client:
        scenes.one_of_each(client, "sample")
    argv = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{served.url}/openapi.json", "--no-color"]
    argv += ["-H", f"Authorization: Bearer {served.tokens['administrator']}"]
    argv += ["--max-time", str(SECONDS), "--generation-deterministic", "--warnings", "off"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS * 8)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    assert served.process.poll() is None
