"""A project and invocations for tests that run behaviors directly, without a worker."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statecfg.entities import behaviors
from statecfg.entities.invocation import BehaviorResult, Invocation, InvocationTasks, InvokedEntity
from statecfg.entities.model import Behavior, Principal
from statecfg.playbook import project

UUID = "0a1b2c3d-0000-4000-8000-00000000000"
TYPE = "urn:vcloud:type:acme:site:1.0.0"
BEHAVIOR = "urn:vcloud:behavior-interface:provide:acme:sites:1.0.0"
TOKEN = "short-lived-token"
Json = dict[str, Any]


def invocation(execution: Mapping[str, Any], entity: Mapping[str, Any] | None = None, **more: Any) -> Invocation:
    """Return an invocation. `number` is part of the id and of the name of its entity."""
    number = more.pop("number", 1)
    behavior = Behavior("urn:vcloud:interface:acme:sites:1.0.0", BEHAVIOR, BEHAVIOR, "provide", None, execution)
    id = f"urn:vcloud:entity:acme:site:{UUID}{number}"
    given = {
        "id": "6f1d", "tasks": InvocationTasks("urn:vcloud:task:77", ""), "behavior": behavior, "hook": "",
        "execution": execution, "entity": InvokedEntity(id, f"site{number}", TYPE, dict(entity or {})),
        "arguments": {}, "metadata": {}, "user": Principal("alice", "shop", "author"),
    }  # fmt: skip
    return Invocation(**{**given, **more})


@dataclass
class Site:
    """A project in a directory, with its own store."""

    root: Path
    news: list[Json] = field(default_factory=list)

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, given: Invocation, stop: threading.Event | None = None) -> BehaviorResult:
        """Run an invocation until it ends. Its messages are in `news`."""
        found = self.begin(given, stop or threading.Event())
        assert found is not None
        return found

    def begin(self, given: Invocation, stop: threading.Event) -> BehaviorResult | None:
        """Run an invocation until it ends or `stop` is set. Its messages are in `news`."""
        self.news.clear()
        place = project.find(self.root)
        return behaviors.run(given, place, str(self.root / "store.db"), stop, self.news.append, lambda: TOKEN)

    def details(self) -> str:
        """Return the last task details for users."""
        return self._last("details")

    def log(self) -> str:
        """Return the last task details for administrators."""
        return self._last("log")

    def _last(self, key: str) -> str:
        return str(next(each[key] for each in reversed(self.news) if key in each))


def message(outcome: BehaviorResult) -> str:
    """Return the error message of a failed invocation."""
    assert not outcome.ok and outcome.error is not None
    return str(outcome.error["message"])
