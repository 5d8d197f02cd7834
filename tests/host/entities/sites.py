"""A project whose entities of the type `site` run a playbook on test hosts, the entity command, and workers."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from statecfg.cli.main import status
from statecfg.entities.model import Entity, Principal, Query, Task
from statecfg.entities.operations import Operations
from statecfg.entities.worker import Worker
from statecfg.playbook import project
from statecfg.store import opened
from tests.host.command import Ran, reach
from tests.lab import Host

ME = Principal("root", "System", "administrator")
PROVIDE = {"type": "Playbook", "id": "playbooks/site.yml"}
INTERFACE = "urn:vcloud:interface:acme:sites:1.0.0"
SCHEMA = {
    "type": "object",
    "required": ["title"],
    "properties": {"title": {"type": "string"}, "host": {"type": "string"}, "extra": {"type": "boolean"}},
}
PLAYBOOK = """
hosts: all
vars: {base: /srv/sites}
resources:
  - directory: "{{ base }}"
  - file: "{{ base }}/{{ entity_name }}.html"
    content: "{{ entity.title }} {{ arguments.get('note', 'plain') }}"
    requires: ["directory:{{ base }}"]
  - file: "{{ base }}/{{ entity_name }}.extra"
    content: more
    when: entity.extra | default(false)
    requires: ["directory:{{ base }}"]
"""


def behavior(name: str) -> str:
    """Return the id of a behavior of the interface."""
    return f"urn:vcloud:behavior-interface:{name}:acme:sites:1.0.0"


@dataclass
class Sites:
    """A project in a directory, with its own store and some hosts. `worker` runs a task only on request."""

    root: Path
    hosts: tuple[Host, ...]

    def __post_init__(self) -> None:
        reach(self.root, self.hosts)
        self.write("statecfg.toml", 'name = "shop"\nssh_config = "ssh_config"\nstore = "store.db"\n')
        self.write("playbooks/site.yml", PLAYBOOK)
        # The environment of the tests names another store, which would take precedence.
        self.environment = {"STATECFG_STORE": str(self.root / "store.db"), "HOME": str(self.root)}
        self.store = opened(project.find(self.root), str(self.root / "store.db"))
        self.calls = Operations(self.store)
        self.worker = Worker(self.calls, project.find(self.root), 2)
        self.calls.create_interface(ME, {"name": "sites", "vendor": "acme", "nss": "sites", "version": "1.0.0"})

    def close(self) -> None:
        """Stop the worker and close the store."""
        self.worker.stop()
        self.store.close()

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *words: str, code: int | None = 0, stdin: str = "") -> Ran:
        """Run `statecfg entity …` in the project, inside this process to save time."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.chdir(self.root))
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            for name, value in {**self.environment, "NO_COLOR": "1", "COLUMNS": "200"}.items():
                patch.setenv(name, value)
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            stack.enter_context(contextlib.redirect_stdout(out))
            stack.enter_context(contextlib.redirect_stderr(err))
            ended = status(["entity", *words])
        ran = Ran(ended, out.getvalue(), err.getvalue())
        assert code is None or ran.code == code, f"exit code {ran.code}\n{ran.out}\n{ran.err}"
        return ran

    def behavior(self, name: str, execution: Mapping[str, Any]) -> str:
        """Create a behavior. Return its id."""
        return self.calls.create_behavior(ME, INTERFACE, {"name": name, "execution": dict(execution)}).id

    def playbook(self, name: str, **properties: Any) -> str:
        """Create a behavior that runs the playbook. Return its id."""
        return self.behavior(name, {**PROVIDE, "execution_properties": properties})

    def type(self, name: str, **hooks: str) -> str:
        """Create a type with these hooks. Return its id."""
        body = {
            "name": name, "vendor": "acme", "nss": name, "version": "1.0.0", "interfaces": [INTERFACE],
            "schema": SCHEMA, "hooks": hooks,
        }  # fmt: skip
        return self.calls.create_type(ME, body).id

    # Entities, by name

    def create(self, kind: str, name: str, hooks: bool = True, **content: Any) -> Task:
        """Create an entity and run its hooks. Return the task after its end."""
        body = {"name": name, "entity": content}
        task = self.calls.create_entity(ME, f"urn:vcloud:type:acme:{kind}:1.0.0", body, True, hooks)
        return self.finish(task) if hooks else task

    def update(self, name: str, **content: Any) -> Task:
        """Change an entity and run its hooks. Return the task after its end."""
        body = {"name": name, "entity": content}
        done = self.calls.update_entity(ME, self.entity(name).id, body)
        assert done.task is not None
        return self.finish(done.task)

    def delete(self, name: str, hooks: bool = True) -> Task:
        """Delete an entity and run its hooks. Return the task after its end."""
        return self.finish(self.calls.delete_entity(ME, self.entity(name).id, None, hooks))

    def finish(self, task: Task) -> Task:
        """Run a task until it ends. Return it."""
        ended = self.worker.finish(task.id, 60, ME)
        assert ended.is_finished, ended
        return ended

    def entity(self, name: str) -> Entity:
        """Return the entity with this name."""
        (found,) = self.calls.list_entities(ME, Query(f"name=={name}")).values
        return found

    def state(self, name: str) -> str:
        """Return the state of an entity, or "gone" if it does not exist."""
        found = self.calls.list_entities(ME, Query(f"name=={name}")).values
        return found[0].state if found else "gone"

    @contextmanager
    def working(self, later: float = 0.0, size: int = 2) -> Iterator[Worker]:
        """Let another worker run due tasks. Its clock is `later` seconds ahead."""
        worker = Worker(Operations(self.store, lambda: time.time() + later), project.find(self.root), size)
        worker.start()
        try:
            yield worker
        finally:
            worker.stop()
        assert worker.problems == []
