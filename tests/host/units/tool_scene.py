"""The tools and the agent of a unit's hook, as on a host. Only the controller is replaced by fixed answers."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from statecfg.remote.units.agent import Agent
from statecfg.remote.units.context import Context
from statecfg.remote.units.settings import UnitError
from statecfg.remote.units.step import UnitStep
from statecfg.remote.units.tools import install as tool_files

CONFIG = {"title": "My Title", "skill-level": 9001, "outlook": None, "flag": False}


class Called(NamedTuple):
    """The result of a tool call."""

    status: int
    out: str
    err: str


class Scene:
    """A running hook of mysql/0, with the data that it can read and the messages that it sends.

    :param place: a directory for the state of a host
    :param relation: True for a hook of the relation db:0, False for a hook without a relation
    :param settings: (relation, unit) → the settings that the controller knows
    :param step: other fields of the step that the controller sends
    """

    def __init__(
        self,
        place: Path,
        relation: bool = True,
        settings: Mapping[tuple[str, str], dict[str, str]] | None = None,
        config: Mapping[str, Any] = CONFIG,
        leader: Mapping[str, str] | None = None,
        **step: Any,
    ) -> None:
        units = ["wordpress/0", "wordpress/1"]
        self.settings = settings if settings is not None else recorded()
        self.config, self.leader = config, leader or {}
        self.said: list[dict[str, Any]] = []
        self.step: dict[str, Any] = {
            "unit": "mysql/0",
            "service": "mysql",
            "charm": "mysql",
            "hook": "config-changed",
            "leader": True,
            "relations": {"db:0": units, "db:1": units},
            "services": {"db:0": "wordpress", "db:1": "wordpress"},
            "relation": None,
            "addresses": {"private-address": "10.0.0.1", "public-address": ""},
        }
        if relation:
            self.step["hook"] = "db-relation-changed"
            self.step["relation"] = {"id": "db:0", "number": 0, "name": "db", "remote": "wordpress/0", "broken": False}
            self.step["relation"]["members"] = units
        self.step.update(step)
        self.tools = tool_files.install(str(place))
        self.agent = Agent(str(place), lambda level, text: self.said.append({"level": level, "text": text}))
        self.context = Context(UnitStep.from_json(self.step), self.ask, self.said.append)
        self.token = self.agent.begin(self.context)

    def ask(self, node: list[str], over: threading.Event) -> dict[str, Any]:
        if node == ["config"]:
            return dict(self.config)
        if node == ["leader"]:
            return dict(self.leader)
        _, relation, unit = node
        if (relation, unit) not in self.settings:
            name = relation.partition(":")[0]
            raise UnitError("NoSuchUnit", f"The relation '{name}' has no unit state for '{unit}'")
        return dict(self.settings[relation, unit])

    def environment(self) -> dict[str, str]:
        """Return the environment variables that the tools read."""
        return {
            "PATH": f"{self.tools}:/usr/bin:/bin",
            "JUJU_AGENT_SOCKET": self.agent.path,
            "JUJU_CLIENT_ID": self.token,
            "JUJU_RELATION": "db",
            "JUJU_REMOTE_UNIT": "wordpress/0",
        }

    def call(self, *words: str, stdin: str = "", cwd: Path | None = None, **changed: str | None) -> Called:
        """Call a tool like a hook. Its standard input is a pipe."""
        environment = {**os.environ, **self.environment(), **changed}
        environment = {name: value for name, value in environment.items() if value is not None}
        path = os.path.join(self.tools, words[0])
        done = subprocess.run(
            [words[0], *words[1:]], executable=path, env=environment, input=stdin, text=True, capture_output=True,
            cwd=cwd, timeout=60,
        )  # fmt: skip
        return Called(done.returncode, done.stdout, done.stderr)

    def changes(self) -> dict[str, Any]:
        """End the hook with success. Return its changes."""
        found: dict[str, Any] = self.context.finish()
        return found

    def close(self) -> None:
        self.agent.close()


def recorded() -> dict[tuple[str, str], dict[str, str]]:
    """Return the settings that existed during the recorded calls."""
    theirs = {"host": "10.0.0.5", "port": "80"}
    found = {(relation, f"wordpress/{number}"): dict(theirs) for relation in ("db:0", "db:1") for number in (0, 1)}
    return {**found, ("db:0", "mysql/0"): {"private-address": "10.0.0.1"}, ("db:1", "mysql/0"): {}}
