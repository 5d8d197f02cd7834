"""A client of the Language Server Protocol, for tests with the real server that editors use for YAML."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from tests import ROOT
from tests.lab.fixtures import NOT_RUN

NODE = ROOT / ".node/node_modules"
PATIENCE = 60  # seconds for one answer, on a busy machine


def program(name: str) -> Path:
    """Return a program that script/setup installed with npm. Skip the test if it is missing."""
    path = NODE / ".bin" / name
    if shutil.which("node") is None or not path.exists():
        pytest.skip(f"{NOT_RUN}there is no {name} (script/setup test installs it with npm)")
    return path


class LanguageServer:
    """A running yaml-language-server.

    :param project: the directory that the editor has open
    """

    def __init__(self, project: Path) -> None:
        self.project = project
        argv = [str(program("yaml-language-server")), "--stdio"]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._answers: dict[int, Queue[Any]] = {}
        self._problems: dict[str, Queue[Any]] = {}
        self._count = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._ask("initialize", {"processId": None, "rootUri": project.as_uri(), "capabilities": CAPABILITIES})
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": SETTINGS})

    def close(self) -> None:
        """End the server."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def open(self, path: str, text: str) -> list[dict[str, Any]]:
        """Open a file with this text, and return its problems as the server reports them."""
        uri = (self.project / path).as_uri()
        self._problems[uri] = Queue()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._tell("textDocument/didOpen", {"textDocument": document})
        problems: list[dict[str, Any]] = self._problems[uri].get(timeout=PATIENCE)
        return problems

    def complete(self, path: str, line: int, character: int) -> dict[str, dict[str, Any]]:
        """Return what the server suggests at a position, by label."""
        answer = self._ask("textDocument/completion", self._position(path, line, character))
        return {item["label"]: item for item in answer["items"]}

    def hover(self, path: str, line: int, character: int) -> str:
        """Return the text that the server shows for a position."""
        answer = self._ask("textDocument/hover", self._position(path, line, character))
        return str(answer["contents"]["value"]) if answer else ""

    def _position(self, path: str, line: int, character: int) -> dict[str, Any]:
        uri = (self.project / path).as_uri()
        return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}

    def _ask(self, method: str, params: Any) -> Any:
        self._count += 1
        answers = self._answers[self._count] = Queue()
        self._send({"id": self._count, "method": method, "params": params})
        return answers.get(timeout=PATIENCE)

    def _tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self.process.stdin.flush()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        size = 0
        while line := stream.readline():
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
            elif not line.strip():  # the end of the headers
                self._take(json.loads(stream.read(size)))

    def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._answers[message["id"]].put(message.get("result"))
        elif message["method"] == "textDocument/publishDiagnostics":
            problems = self._problems.get(message["params"]["uri"])
            if problems is not None:
                problems.put(message["params"]["diagnostics"])
        elif message["method"] == "workspace/configuration":
            wanted = [SETTINGS.get(item.get("section"), {}) for item in message["params"]["items"]]
            self._send({"id": message["id"], "result": wanted})
        elif "id" in message:
            self._send({"id": message["id"], "result": None})


CAPABILITIES = {
    "workspace": {"configuration": True},
    "textDocument": {
        "completion": {"completionItem": {"snippetSupport": True, "documentationFormat": ["markdown"]}},
        "hover": {"contentFormat": ["markdown"]},
        "publishDiagnostics": {},
    },
}
# The server needs to know the tag. It must not fetch the list of schemas for files of other programs.
SETTINGS: dict[str, Any] = {
    "yaml": {
        "validate": True, "hover": True, "completion": True, "customTags": ["!secret mapping"],
        "schemaStore": {"enable": False},
    }
}  # fmt: skip
