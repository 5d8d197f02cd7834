"""Roles, for people: a table of all roles, and the page of one role as text or Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from statecfg.remote.graph.wrong_values import show
from statecfg.views import safe
from statecfg.views.lines import Line, make
from statecfg.views.problems import nearer

if TYPE_CHECKING:
    from statecfg.playbook.role import Parameter, Role


def table_lines(roles: Sequence[Role]) -> Iterator[Line]:
    """Yield a table with a line for each role: its name, where statecfg found it, and its description."""
    rows = [("ROLE", "FROM", ""), *((role.name, role.origin, role.description) for role in roles)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for number, (name, origin, description) in enumerate(rows if roles else ()):
        text = f"{name:<{widths[0]}}  {origin:<{widths[1]}}  "
        yield make((text.rstrip(), "dim")) if not number else make(text, description, hang=sum(widths) + 4)
    if not roles:
        yield make(("no roles", "dim"))


def role_lines(role: Role) -> Iterator[Line]:
    """Yield the page of a role as text: its description and its parameters."""
    yield make(("── ", "dim"), (role.name, "bold"), right=str(nearer(role.position, Path.cwd())), rule=True)
    if role.description:
        yield make("  ", role.description, hang=2)
    width = max((len(item.name) for item in role.parameters), default=0)
    for item in role.parameters:
        yield make("  ", (f"{item.name:<{width}}", "bold"), f"  {_facts(item)}", hang=width + 4)
        if item.description:
            yield make(" " * (width + 4), (item.description, "dim"), hang=width + 4)
    if not role.parameters:
        yield make(("  no parameters", "dim"))


def _facts(item: Parameter) -> str:
    facts = [item.type, *(["secret"] if item.secret else []), _default(item)]
    return ", ".join([*facts, *([f"one of {_listed(item)}"] if item.choices else [])])


def _default(item: Parameter) -> str:
    if item.required:
        return "required"
    if item.default is None:
        return "optional"
    return "has a default" if item.secret else f"default {_shown(item.default)}"


def _listed(item: Parameter) -> str:
    return ", ".join(map(_shown, item.choices))


def page(role: Role) -> str:
    """Return the page of a role in Markdown: its description, an example and its parameters."""
    out = [f"# {role.name}", ""]
    out += [role.description, ""] if role.description else []
    required = [item for item in role.parameters if item.required]
    out += ["```yaml", "resources:", f"  - include: {role.name}"]
    out += ["    vars:", *(f"      {item.name}: …" for item in required)] if required else []
    out += ["```", ""]
    if role.parameters:
        out += ["| parameter | type | default | description |", "| --- | --- | --- | --- |"]
        out += [_row(item) for item in role.parameters]
    else:
        out.append("The role has no parameters.")
    return "\n".join([*out, ""])


def pages(roles: Sequence[Role]) -> str:
    """Return the pages of several roles, one after another."""
    return "\n".join(map(page, roles))


def _row(item: Parameter) -> str:
    value_type = item.type + (", secret" if item.secret else "")
    default = "**required**" if item.required else "" if item.default is None or item.secret else _code(item.default)
    choices = f" One of {_cell(_listed(item))}." if item.choices else ""
    return f"| `{item.name}` | {value_type} | {default} | {_cell(item.description)}{choices} |".replace("  ", " ")


def _code(value: object) -> str:
    return f"`{_cell(value if isinstance(value, str) else _shown(value))}`"


def _shown(value: object) -> str:
    """Return a value as JSON, which is also YAML. Secrets are masked."""
    return json.dumps(value, ensure_ascii=False, default=show)


def _cell(text: object) -> str:
    return safe.line(str(text)).replace("|", "\\|")
