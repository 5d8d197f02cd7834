"""`--engine processes` on real hosts: the same result as threads."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.engines.engine import WorkerEngine
from statecfg.engines.processes import ProcessWorkers
from tests.host.command import reach, statecfg
from tests.lab import Host
from tests.lab.fixtures import light_hosts

VARYING = {"run", "seconds", "started", "ended", "took", "waited", "since", "ledger", "lineage"}


@pytest.fixture(scope="module")
def pair() -> Iterator[list[Host]]:
    yield from light_hosts(2, "engine")


class Project:
    """A project with two hosts and a playbook that uses a fact and a command."""

    def __init__(self, root: Path, hosts: list[Host]) -> None:
        self.root, self.options = root, reach(root, hosts)
        (root / "statecfg.toml").write_text('name = "engines"\n')
        self.write("one")

    def write(self, text: str) -> None:
        (self.root / "site.yml").write_text(
            "hosts: all\nresources:\n"
            f'  - file: /srv/engines/fact\n    content: "{text} {{{{ host.facts.hostname }}}}\\n"\n'
            f"  - directory: /srv/engines\n  - file: /srv/engines/large\n    content: {text * 40_000!r}\n"
            "  - command: done\n    argv: [touch, /srv/engines/done]\n    creates: /srv/engines/done\n"
            "    requires: [file:/srv/engines/fact]\n    undo: [rm, -f, /srv/engines/done]\n"
        )

    def __call__(self, verb: str, *arguments: str, code: int = 0) -> Any:
        state = {"XDG_STATE_HOME": str(self.root / "state")}
        return statecfg(verb, *arguments, *self.options, cwd=self.root, code=code, **state)


@pytest.fixture
def project(tmp_path: Path, pair: list[Host]) -> Iterator[Project]:
    yield Project(tmp_path, pair)
    for host in pair:
        host.run(["rm", "-rf", "/srv/engines", "/var/lib/statecfg/ledger.db", "/var/lib/statecfg/runs"])


def steady(value: Any) -> Any:
    """Return a report without what differs between two runs."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if key not in VARYING}
    return [steady(item) for item in value] if isinstance(value, list) else value


def test_reports_are_those_of_threads(project: Project, pair: list[Host]) -> None:
    seen: dict[str, list[Any]] = {}
    for engine in ("threads", "processes:2"):
        steps: list[Any] = []
        for verb, *more in (
            ("plan",), ("apply", "--yes"), ("apply", "--yes"), ("verify",), ("facts",), ("destroy", "--yes"),
        ):  # fmt: skip
            what = "all" if verb == "facts" else "site.yml"
            done = project(verb, what, *more, "--json", "--engine", engine, code=0)
            steps.append(steady(done.json()))
        seen[engine] = steps
    assert seen["threads"] == seen["processes:2"]
    assert not pair[0].path("/srv/engines").exists()


def test_workers_may_open_as_many_files_as_the_hard_limit_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))  # new processes inherit it
    try:
        source = ProcessWorkers(1)
        with contextlib.closing(WorkerEngine(source)):
            limits = resource.prlimit(source.processes[0][0].pid, resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert limits == (min(hard, 1 << 20), hard)
