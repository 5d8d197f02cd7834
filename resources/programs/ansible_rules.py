"""Ansible modules: the rules for nodes that run one, and how they are sent. Only the controller uses this module."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.wrong_values import Wrong
from statecfg.resources.programs import command_rules
from statecfg.resources.shared import records

NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
SHORTEST = 4  # characters; shorter strings can't be masked in output
# Arguments that many modules have, and what they need on the host.
NEEDS = {"path": "path", "dest": "path", "owner": "user", "group": "group"}


def check(attrs: records.Attrs) -> None:
    """Check the attributes of a node together.

    :raises ValueError: if the name of the module or an effect is invalid, or an attribute has no effect
    """
    if not NAME.fullmatch(attrs["module"]):
        raise Wrong(f"{attrs['module']} is not the name of a module", "write one such as ansible.builtin.lineinfile")
    command_rules.check_effects(attrs.get("effects") or {})
    if attrs.get("when_triggered") and not attrs.get("read_back", True):
        raise ValueError("a node with when_triggered is never read back: remove read_back")


def needs(attrs: records.Attrs) -> list[str]:
    """Return what the arguments with usual names need on the host, and the user."""
    arguments = attrs.get("arguments") or {}
    named = [(prefix, arguments.get(name)) for name, prefix in NEEDS.items()]
    texts = [
        (prefix, value) for prefix, value in [*named, ("user", attrs.get("user"))] if isinstance(value, str) and value
    ]
    return [f"{prefix}:{value}" for prefix, value in texts if prefix != "path" or value.startswith("/")]


def with_code(node: Any, context: Any) -> Any:
    """Check the arguments, and return the node as it is sent: with the module's code, and with its secrets marked as
    secrets.

    :raises Wrong: if there is no such module on this machine, or hosts can't run it
    """
    module = context.ansible_module(node.attrs["module"])
    arguments = _plain(node.attrs.get("arguments") or {})
    for detail, help in module.wrong(arguments):
        context.report(node, detail, help)
    code = {
        "entry": module.entry,
        "content": module.code,
        "check_mode": module.check_mode,
        "python": list(module.python),
    }
    hidden = _marked(arguments, module.secret, context.secret)
    return node.with_attrs(module=module.name, arguments=hidden, code=code)


def _plain(value: Any) -> Any:
    """Return a value of lists and maps as Python's own."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_plain(item) for item in value]
    return value


def _marked(value: Any, secret: Callable[[str], bool], mark: Callable[[str, str], Any], name: str = "") -> Any:
    """Return arguments in which the values of secret options are secrets.

    :param secret: tells whether an option is secret
    :param mark: makes a secret of a name and a value
    :param name: the name of the secret option that contains the value, "" outside of one
    """
    if isinstance(value, dict):
        return {key: _marked(item, secret, mark, name or (key if secret(key) else "")) for key, item in value.items()}
    if isinstance(value, list):
        return [_marked(item, secret, mark, name) for item in value]
    return mark(name, value) if name and isinstance(value, str) and len(value) >= SHORTEST else value
