"""Roles: their declared parameters, and the check of the values that a playbook passes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from statecfg.graph import opaque, schema, types
from statecfg.graph.nodes import RoleUse
from statecfg.problems import Problem, problem, report, suggest
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph import values
from statecfg.remote.graph.wrong_values import show

FILE = "role.yml"
CODE = {".py": "role.py", ".hy": "role.hy"}
FUNCTION = "role"

# The types of parameters, each with the annotation that a node type would use.
TYPES: dict[str, Any] = {
    "string": values.Text,
    "line": values.Line,
    "name": values.Name,
    "path": values.AbsolutePath,
    "mode": values.Mode,
    "user": values.UserName,
    "group": values.GroupName,
    "port": values.Port,
    "integer": int,
    "number": float,
    "boolean": bool,
    "list": list[Any],
    "strings": list[values.Text],
    "map": dict[str, Any],
    "any": Any,
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a role.

    :param type: a key of `TYPES`
    :param default: the value if none is passed; it may contain templates that use the parameters above it
    :param secret: reports mask the value
    :param choices: the allowed values; none for all
    """

    name: str
    type: str = "any"
    default: Any = None
    required: bool = False
    secret: bool = False
    description: str = ""
    choices: tuple[Any, ...] = ()
    position: SourceLocation = field(default=SourceLocation("", 0), compare=False)

    def check(self, value: Any, role: str) -> Any:
        """Return a valid value as templates and nodes receive it.

        :param role: the name of the role
        :raises ValueError: the value is not allowed
        """
        if value is None and not self.required:
            return None
        if self.secret and not isinstance(value, opaque.Value):
            if not isinstance(value, str) or len(value) < opaque.SHORTEST:
                raise ValueError(f"a secret is a string of at least {opaque.SHORTEST} characters")
            value = opaque.Secret(f"{role}.{self.name}", value)
        types.of_annotation(TYPES[self.type], schema.NAMES).check(value)
        if self.choices and value not in self.choices:
            raise ValueError(f"{show(value)} is not one of {', '.join(map(show, self.choices))}")
        return value  # not what the check returns: nodes check the value again, and expect it as it was written


@dataclass(frozen=True)
class Role:
    """A role: a directory with nodes and declared parameters.

    :param origin: where statecfg found it, for people, such as ``roles/`` or ``package acme-roles 1.2``
    :param templates: `ansible` if its templates are rendered as Ansible does; otherwise ""
    """

    name: str
    directory: str
    origin: str = ""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    templates: str = ""

    @property
    def position(self) -> SourceLocation:
        """The source location of its definition."""
        names = (FILE, *CODE.values())
        file = next((name for name in names if os.path.isfile(os.path.join(self.directory, name))), FILE)
        return SourceLocation(os.path.join(self.directory, file), 1)


@dataclass(frozen=True)
class Given:
    """The values that a playbook passes to a role.

    :param values: by the name of the parameter
    :param position: the source location that includes the role
    :param positions: the source location of each value, if the dialect knows it
    """

    values: Mapping[str, Any]
    position: SourceLocation
    positions: Mapping[str, SourceLocation] = field(default_factory=dict)

    def location(self, name: str) -> SourceLocation:
        """Return the source location of a value."""
        return self.positions.get(name, self.position)


def check_names(role: Role, given: Given) -> bool:
    """Report values whose name is not a parameter, and required parameters without a value.

    :returns: whether all required parameters have a value
    """
    names = [item.name for item in role.parameters]
    for name in given.values:
        if name not in names:
            help_text = suggest(name, names, "it has") or "it has no parameters"
            detail = f"the role {role.name} has no parameter `{name}`"
            report(problem("SC0326", detail, help_text, given.location(name)))
    missing = [item for item in role.parameters if item.required and item.name not in given.values]
    for item in missing:
        detail = f"the role {role.name} requires the parameter `{item.name}`"
        help_text = f"{item.name}: {item.description}" if item.description else f"write vars: {{{item.name}: …}}"
        report(problem("SC0326", detail, help_text, given.position, item.position))
    return not missing


def checked(role: Role, parameter: Parameter, value: Any, location: SourceLocation) -> tuple[Any, bool]:
    """Return the value of a parameter as the role receives it, and whether it is allowed. Report if it is not."""
    try:
        return parameter.check(value, role.name), True
    except ValueError as error:
        detail = f"`{parameter.name}` of the role {role.name}: {error}"
        help_text = getattr(error, "help", "") or parameter.description
        report(problem("SC0327", detail, help_text, location, parameter.position))
        return value, False


def chain(use: RoleUse | None) -> list[RoleUse]:
    """Return a role and the roles that include it, the innermost first."""
    uses = []
    while use is not None:
        uses.append(use)
        use = use.outer
    return uses


def named_in(item: Problem, role: str) -> Problem:
    """Return a problem whose detail names the role that it is in."""
    if "(in the role " in item.detail or f"the role {role}" in item.detail:
        return item
    first, line, rest = item.detail.partition("\n")
    return replace(item, detail=f"{first} (in the role {role}){line}{rest}")
