"""The JSON Schema of inventories."""

from __future__ import annotations

from statecfg.dialects import yaml_inventory
from statecfg.editors.values import closed, definitions, described, one_or_more, optional
from statecfg.graph.json_schema import JsonSchema, Properties
from statecfg.playbook.inventory import ALL, TRANSPORTS

_NAME = r"^(@local|(?!all$)[A-Za-z0-9_][A-Za-z0-9_.-]*)$"
_GROUP = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
_VARS: JsonSchema = {"type": "object", "propertyNames": {"pattern": r"^(?!host$)[^\W\d]\w*$"}}
_TEXT: JsonSchema = {"type": "string"}
_NAMES: JsonSchema = {"type": "array", "items": _TEXT, "uniqueItems": True}

HOST: Properties = {
    "address": optional(_TEXT, "The address to connect to. Default: the name of the host."),
    "port": optional({"type": "integer", "minimum": 1, "maximum": 65535}, "The port of the SSH server. Default: 22."),
    "user": optional(_TEXT, "The user to log in as."),
    "key": optional(one_or_more(_TEXT), "Private keys to try: paths on this machine."),
    "jump": optional(_TEXT, "Jump hosts, in the format of `ssh -J`."),
    "become": optional(
        {"enum": [True, False, *yaml_inventory.BECOME]}, "Act as another user; `true` does this with `sudo`."
    ),
    "become_user": optional({**_TEXT, "default": "root"}, "The user to act as."),
    "python": optional({**_TEXT, "pattern": "^/"}, "The path of the Python on the host."),
    "transport": optional({"enum": list(TRANSPORTS)}, "How to reach the host. `local`: it is this machine."),
    "vars": optional(_VARS, "Variables of the host. They override those of its groups."),
    "vars_files": one_or_more(_TEXT, "Files with more variables of the host, relative to this file."),
}
GROUP: Properties = {
    "hosts": optional(_NAMES, "The hosts of the group."),
    "groups": optional(_NAMES, "Groups in this group."),
    "vars": optional(_VARS, "Variables of all hosts in the group."),
    "vars_files": one_or_more(_TEXT, "Files with more variables of these hosts, relative to this file."),
}

_SOURCES = "Other inventories: files or directories, and programs that print the JSON of Ansible."
_PROGRAM = closed(
    {
        "command": {
            "type": "array",
            "items": _TEXT,
            "minItems": 1,
            **described("A program that prints the JSON of Ansible, and its arguments."),
        },
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": yaml_inventory.LONGEST,
            **described("Seconds that the program may take."),
        },
    },
    ["command"],
)


def inventory() -> JsonSchema:
    """Return the schema of inventories in statecfg's own format."""
    host = closed({key: HOST.get(key, {}) for key in yaml_inventory.HOST_KEYS})
    group = closed({key: GROUP.get(key, {}) for key in yaml_inventory.GROUP_KEYS})
    keys: Properties = {
        "hosts": {
            **_named(_NAME, host, "a host"),
            **described("The machines. `@local` is this machine. Without an address, statecfg connects to the name."),
        },
        "groups": {
            **_named(_GROUP, group, "a group"),
            **described(f"Groups of hosts. The group `{ALL}` contains every host, and has only variables."),
        },
        "sources": optional({"type": "array", "items": {"anyOf": [_TEXT, _PROGRAM]}}, _SOURCES),
    }
    top = closed({key: keys.get(key, {}) for key in yaml_inventory.KEYS})
    return {**top, "definitions": definitions()}


def _named(pattern: str, value: JsonSchema, what: str) -> JsonSchema:
    """Return the schema of a map from names to settings, or of a list of names."""
    name: JsonSchema = {
        "type": "string",
        "pattern": pattern,
        "patternErrorMessage": f"This can't be the name of {what}.",
    }
    settings: JsonSchema = {"type": "object", "propertyNames": name, "additionalProperties": optional(value)}
    return optional({"anyOf": [settings, {"type": "array", "items": name}]})
