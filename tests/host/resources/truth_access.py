"""Cases for the node types that check a host, and for access to it and its servers (see `truth`)."""

from __future__ import annotations

from statecfg.graph.graph import Graph
from statecfg.resources import directory, http_request
from tests.host.resources import things
from tests.host.resources.truth_case import Case
from tests.lab import Host

PORT = 8320
URL = f"http://127.0.0.1:{PORT}"


def _http_request(root: str, requires: list[Graph]) -> list[Graph]:
    headers = {"Authorization": f"Bearer {things.WORD}"}
    first = http_request(
        "first", url=f"{URL}/first", method="PUT", body="one", headers=headers, changes=True,
        unless={"url": f"{URL}/first", "contains": "^one$"}, requires=requires,
    )  # fmt: skip
    place = directory(root, requires=requires)
    return [
        http_request("nothing", url=f"{URL}/nothing", status=[404], requires=requires),
        http_request("readable", url=f"{URL}/first", contains="^one$", requires=[first]),
        http_request(
            "second", url=f"{URL}/second", method="PUT", headers=headers, changes=True, when_triggered=True,
            restart_on=[place],
        ),
    ]  # fmt: skip


def _http_request_drift(host: Host, root: str) -> None:
    things.delete(host, PORT, "/first")


ACCESS = [
    Case("http_request", _http_request, _http_request_drift, lambda host, root: things.start(host, "/srv/http", PORT)),
]
