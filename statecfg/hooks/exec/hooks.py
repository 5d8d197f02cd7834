"""The exec hooks of a store, and the ones that the project declares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from statecfg.hooks.registration.model import EVENTS, ExecHook, Registration, Selector
from statecfg.problems import InvalidInput, durations, problem, suggest
from statecfg.store.hooks import objects
from statecfg.store.hooks.records import HookObject, Spec

if TYPE_CHECKING:
    from statecfg.hooks.exec.types import HookTypes
    from statecfg.store.database import Store


class ExecHooks:
    """The exec hooks of a store.

    :param store: has the hooks
    :param types: the available hook types
    """

    def __init__(self, store: Store, types: HookTypes) -> None:
        self.store, self.types = store, types
        self._declared: dict[str, Registration] = {}

    def every(self) -> list[tuple[HookObject, Spec]]:
        """Return the hooks that may be called, each with its spec. The project's declaration overrides the store.

        Hooks that only other projects declare are omitted. The store keeps them, with their configuration.
        """
        return [(hook, spec) for hook in objects.every(self.store) if (spec := self._spec(hook)) is not None]

    def find(self, name: str) -> HookObject:
        """Return a hook.

        :raises InvalidInput: it does not exist
        """
        hook = objects.get(self.store, name)
        if hook is None:
            names = [other.name for other in objects.every(self.store)]
            hint = suggest(name, names, "available") or "create one with `statecfg hook create`"
            raise InvalidInput([problem("SC0624", f"hook `{name}` does not exist", hint)])
        return hook

    def adopt(self, registration: Registration, user: str) -> HookObject:
        """Return the hook of a registration in the project. Create it, with its configuration, if it does not exist.

        :param user: gets Full Control of a new hook
        :raises InvalidInput: a hook of this name has another type, or the configuration does not fit its type
        """
        hook = objects.get(self.store, registration.name) or self._create(registration, user)
        if hook.type != registration.exec.type:
            detail = f"The hook {registration.name} already exists, and the hook_type fields do not match"
            hint = f"it is of the type {hook.type}; rename one, or: statecfg hook delete {hook.name}"
            raise InvalidInput([problem("SC0623", detail, hint, registration.position)])
        self._declared[registration.name.casefold()] = registration
        return hook

    def _create(self, registration: Registration, user: str) -> HookObject:
        type, chosen = self.types.find(registration.exec.type), registration.select
        spec = Spec(
            *(chosen.hosts, chosen.types, chosen.names, chosen.tags, registration.events),
            *(registration.where, registration.order, f"PT{registration.deadline:g}S", registration.on_failure),
            declared=True,
        )
        complete = type.configured(registration.exec.configuration)
        hook, _ = objects.create(self.store, registration.name, type.name, str(type.folder), complete, spec, user)
        return hook

    def _spec(self, hook: HookObject) -> Spec | None:
        declared = self._declared.get(hook.name.casefold())
        if declared is None:
            return None if hook.spec.declared else hook.spec
        return replace(hook.spec, hosts=declared.select.hosts, events=declared.events)

    def registrations(self, declared: Iterable[str] = ()) -> list[Registration]:
        """Return the hooks of the store as registrations, by order and name.

        :param declared: names of hooks that this project declares; hooks that only other projects declare are left out
        """
        names = {*self._declared, *(name.casefold() for name in declared)}
        hooks = objects.every(self.store)
        ours = [hook for hook in hooks if not hook.spec.declared or hook.name.casefold() in names]
        return sorted(map(self._registration, ours), key=lambda registration: (registration.order, registration.name))

    def _registration(self, hook: HookObject) -> Registration:
        spec = hook.spec
        warnings = []
        try:
            handled: tuple[str, ...] = tuple(self.types.find(hook.type, Path(hook.folder)).events())
        except InvalidInput as error:
            handled, warnings = spec.events, error.problems
        return Registration(
            hook.name,
            tuple(event for event in EVENTS if event in handled and event in (spec.events or EVENTS)),
            Selector(spec.hosts, spec.types, spec.names, spec.tags),
            spec.where,
            spec.order,
            durations.deadline(spec.deadline),
            spec.on_failure,
            hook.access,
            exec=ExecHook(hook.type, hook.configuration),
            warnings=tuple(warnings),
        )
