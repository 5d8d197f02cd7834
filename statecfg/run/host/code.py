"""The code that one host needs. Finding it reads source files and a cache, so drivers do that and not the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from statecfg.playbook.compile import Definition
from statecfg.problems.frozen import dataclass
from statecfg.run.bundle import Bundle, Part, build, more_types, parts


@dataclass(frozen=True)
class Code:
    """The code that one host needs for its definition.

    :param bundle: the executor's core, with the modules of all node types of the definition
    :param parts: digest → part that the host needs in addition to its bundle
    """

    bundle: Bundle
    parts: Mapping[str, Part]


def needed(definition: Definition, more: Mapping[str, Any], sent: Bundle) -> Code:
    """Return the code that a definition needs.

    :param more: additional data for the executor
    :param sent: the bundle that the host has, or gets first
    :raises InvalidInput: if a node type can't be sent
    """
    types = more_types(definition.types, sent)
    bundle = replace(sent, modules=build(definition.types).modules) if types else sent
    return Code(bundle, {**types, **parts(more, definition.layers, bool(definition.secrets))})
