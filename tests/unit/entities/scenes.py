"""A scene: an interface with a behavior for each hook, types that use them, and a worker with given outcomes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from statecfg.entities import model
from statecfg.entities.invocation import BehaviorResult
from statecfg.entities.model import Entity, EntityType, Principal, Query, Task
from statecfg.entities.operations import Operations
from statecfg.entities.problems import ApiError
from statecfg.store import opened
from statecfg.store.database import Store

ROOT = Principal("root", model.PROVIDER, "administrator")
ANN = Principal("ann", "sales", "author")
BEN = Principal("ben", "sales", "author")
EVE = Principal("eve", "plant", "author")
VIC = Principal("vic", "sales", "viewer")
INTERFACE = "urn:vcloud:interface:acme:lamp:1.0.0"
SCHEMA = {"type": "object", "required": ["foo"], "properties": {"foo": {"type": "string"}}}
FAILED = {"majorErrorCode": 500, "minorErrorCode": "LAMP_BROKEN", "message": "the lamp is broken"}
ALL = Query()


def behavior(name: str) -> str:
    return f"urn:vcloud:behavior-interface:{name}:acme:lamp:1.0.0"


def refused(status: int, code: str, call: Any, *arguments: Any, **named: Any) -> str:
    """Make a call that must fail with this error. Return the message."""
    with pytest.raises(ApiError) as found:
        call(*arguments, **named)
    assert (found.value.status, found.value.minor_code) == (status, code)
    return found.value.message


class Scene:
    def __init__(self, store: Store) -> None:
        self.now = 1_000_000.0
        self.store, self.operations = store, Operations(store, lambda: self.now)
        self.ran: list[str] = []
        self.numbers = itertools.count(1)
        o = self.operations
        o.create_interface(ROOT, {"name": "lamps", "vendor": "acme", "nss": "lamp", "version": "1.0.0"})
        for name in (*model.HOOKS, "blink"):
            o.create_behavior(ROOT, INTERFACE, {"name": name, "execution": {"type": "noop", "id": name}})

    def type(self, *hooks: str, nss: str = "", version: str = "1.0.0", **more: Any) -> EntityType:
        """Create a type that binds each of these hooks to the behavior with the same name."""
        body = {
            "name": "lamp",
            "vendor": "acme",
            "nss": nss or f"lamp{next(self.numbers)}",
            "version": version,
            "interfaces": [INTERFACE],
            "schema": SCHEMA,
            "hooks": {hook: behavior(hook) for hook in hooks},
        }
        return self.operations.create_type(ROOT, body | more)

    def entity(self, kind: EntityType, state: str = model.RESOLVED, who: Principal = ROOT, **body: Any) -> Entity:
        """Create an entity in a state, without running hooks."""
        o = self.operations
        content = {"foo": "bar"} if state in (model.RESOLVED, model.IN_DELETION) else {}
        given = {"name": "e", "entity": content, **body}
        id = o.create_entity(who, kind.id, given, resolve=state != model.PRE_CREATED, invoke_hooks=False).entity
        if state == model.IN_DELETION:
            o.update_entity(who, id, {"entityState": state}, invoke_hooks=False)
        found = o.get_entity(who, id)
        assert found.state == state
        return found

    def work(self, *failing: str) -> list[str]:
        """Run all due hooks. The hooks in `failing` fail. Return the names of the hooks that ran."""
        ran = []
        while (id := self.operations.claim("worker")) is not None:
            while (found := self.operations.advance(id)) is not None:
                ran.append(found.hook)
                ok = found.hook not in failing
                outcome = (
                    BehaviorResult(True, {"entityId": found.entity.id}) if ok else BehaviorResult(False, error=FAILED)
                )
                assert self.operations.enter_outcome(id, found.id, outcome)
        self.ran += ran
        return ran

    def task(self, id: str) -> Task:
        return self.operations.get_task(ROOT, id)

    def state(self, id: str) -> str:
        """Return the state of an entity, or "gone" if it does not exist."""
        try:
            return self.operations.get_entity(ROOT, id).state
        except ApiError:
            return "gone"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Return a scene with a SQLite store. The tests of a module share it, and each test creates its own types."""
    with opened(url=str(tmp_path_factory.mktemp("entities") / "store.db")) as found:
        yield Scene(found)
