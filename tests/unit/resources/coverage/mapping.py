"""Reads the surveyed tasks and the rules that say how each of them is written, and finds out what exists.

`tasks.jsonl` has a line for each task: its role, its module, the names of its options and keywords, and the name of its
rule. `rules.yml` says which node types, attributes, keys of entries and facts replace such a task. Whether these exist
is looked up in the JSON Schema of playbooks and in the catalogue of facts, so a new node type counts at once.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from statecfg.dialects import yaml_entry
from statecfg.editors import node_types, playbooks
from statecfg.facts import catalogue
from statecfg.graph import schema
from statecfg.remote.graph.nodetype import OPTIONS
from tests import ROOT

HERE = Path(__file__).parent
COMMAND = "command"


def _read(name: str) -> Any:
    return yaml.load((HERE / name).read_text(encoding="utf-8"), yaml.CSafeLoader)


@dataclass(frozen=True)
class Rule:
    """How one kind of task is written; `rules.yml` explains the fields."""

    name: str
    what: str
    types: tuple[str, ...] = ()
    options: Mapping[str, str] | None = None
    dropped: Mapping[str, str] | None = None
    keys: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    note: str = ""

    @property
    def is_query(self) -> bool:
        """Return whether the task only reads the host, so that its options have no counterpart."""
        return self.name.startswith("query_")

    def attributes(self) -> Iterator[str]:
        """Yield the attributes that replace options, as TYPE.ATTRIBUTE."""
        for target in (self.options or {}).values():
            yield target if "." in target else f"{self.types[0]}.{target}"

    def needed(self) -> frozenset[str]:
        """Return the names of everything that the rule uses: node types, attributes, keys and facts."""
        return frozenset([*self.types, *self.attributes(), *self.keys, *(f"host.facts.{fact}" for fact in self.facts)])


@dataclass(frozen=True)
class Task:
    """A task of a role."""

    role: str
    module: str
    options: tuple[str, ...]
    keywords: tuple[str, ...]
    rule: Rule
    keys: tuple[str, ...] = ()
    facts: bool = False  # whether it uses facts
    handler: bool = False

    def needed(self) -> frozenset[str]:
        """Return what the rule needs for this task: only the attributes that replace its own options."""
        rule, used = self.rule, [*self.keys]
        for option in self.options:
            target = (rule.options or {}).get(option)
            if target is not None:
                used.append(target if "." in target else f"{rule.types[0]}.{target}")
        types = rule.types[:1] if len(rule.types) > 1 else rule.types
        return frozenset([*types, *rule.keys, *(f"host.facts.{fact}" for fact in rule.facts), *used])

    def missing(self) -> frozenset[str]:
        """Return what the task needs and statecfg does not have yet."""
        return self.needed() - existing()

    @property
    def how(self) -> str:
        """Return how the task is written: `node`, `command`, or `planned` if something is missing."""
        if self.rule.types == (COMMAND,):
            return COMMAND
        return "planned" if self.missing() else "node"


@functools.cache
def existing() -> frozenset[str]:
    """Return the names of all node types, their attributes (TYPE.ATTRIBUTE), keys of entries, and facts."""
    types = node_types.of_project(ROOT)
    definitions = playbooks.playbook(types)["definitions"]
    controls = {*yaml_entry.CONTROL, *OPTIONS}
    found = {*types, *controls, *(f"host.facts.{name}" for name in [*catalogue.NAMES, catalogue.OWN])}
    for name, node_type in types.items():
        keys = definitions[f"type {name}"]["properties"]
        found.update(f"{name}.{key}" for key in (*keys, *schema.of(node_type).arguments))
    return frozenset(found)


def without_attributes(names: frozenset[str]) -> frozenset[str]:
    """Return the names without attributes of node types that are among them, too, or do not exist at all."""
    types = {name.partition(".")[0] for name in names if name.partition(".")[0] not in existing()}
    return frozenset({name if name.startswith("host.") else _type_if(name, types) for name in names})


def _type_if(name: str, types: set[str]) -> str:
    return name.partition(".")[0] if name.partition(".")[0] in types else name


@functools.cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = _read("rules.yml")
    return data


@functools.cache
def rules() -> dict[str, Rule]:
    """Return the rules by name, in the order of the file."""
    return {name: _frozen(Rule, name=name, **fields) for name, fields in _data().items() if name != "keywords"}


def keywords() -> dict[str, dict[str, str]]:
    """Return what replaces each keyword: `key` names a key of entries, `instead` describes something else."""
    found: dict[str, dict[str, str]] = _data()["keywords"]
    return found


@functools.cache
def tasks() -> tuple[Task, ...]:
    """Return all surveyed tasks, in the order of their roles."""
    lines = (HERE / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return tuple(_frozen(Task, **{**row, "rule": rules()[row["rule"]]}) for row in rows)


def ranked() -> list[dict[str, Any]]:
    """Return the forty most used kinds of resources, in their order."""
    found: list[dict[str, Any]] = _read("ranked.yml")
    return found


def exceptions() -> dict[str, dict[str, str]]:
    """Return the commands in the project of the tests: file → name of the command → why it is one."""
    found: dict[str, dict[str, str]] = _read("exceptions.yml")
    return found


def _frozen(cls: Any, **fields: Any) -> Any:
    return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})
