"""The JSON Schema of what hosts decide: conditions (`when_host`) and lists of items (`for_each_host`)."""

from __future__ import annotations

from statecfg.editors.values import closed, described, in_yaml, one_or_more, template
from statecfg.graph import host_conditions
from statecfg.graph.json_schema import JsonSchema, Properties

_ABOUT = {
    "path": "Something exists at this path.",
    "is": "With `path`: what is there. `file` and `directory` follow links.",
    "contains": "With `path`: a regular expression for the content of the file.",
    "package": "This package is installed.",
    "version": 'With `package`: limits of its version, such as `">= 1.22, < 2"`.',
    "unit": "This systemd unit exists.",
    "user": "This user exists.",
    "group": "This group exists.",
    "command": "This read-only command (a list, or a string for the shell) ends with status 0.",
    "read_only": "With `command`: `true` declares that it changes nothing.",
    "reads": "With `command`: the paths that it reads.",
    "not": "This condition is false, or one of these is.",
    "any": "One of these conditions is true.",
}
_ABOUT_LISTS = {
    "glob": "The paths that match this pattern, such as `/etc/app/*.conf`. A `*` matches one level.",
    "is": "With `glob`: only files, directories or links. `file` and `directory` follow links.",
    "users": "The users of `/etc/passwd`: all (`{}`), or those within `min_uid` and `max_uid`, or of a `group`.",
    "mounts": "The mounted file systems: all (`{}`), or those of a `type`.",
    "command": "The lines that this read-only command (a list, or a string for the shell) prints.",
    "read_only": "With `command`: `true` declares that it changes nothing.",
    "reads": "With `command`: the paths that it reads.",
}
_CONDITIONS: JsonSchema = {"$ref": "#/definitions/conditions"}


def definitions() -> Properties:
    """Return the definitions `condition`, `conditions` and `items`, to which other schemas refer."""
    keys: Properties = {
        "is": {"anyOf": [{"enum": [*host_conditions.PATHS]}, template("file, directory or link")]},
        "version": {"type": "string"},
        "read_only": {"enum": [True]},
        "reads": {"type": ["array", "string"], "items": in_yaml(host_conditions.accepted("path").json(), "a path")},
        "not": {"anyOf": [_CONDITIONS]},
        "any": {"type": "array", "items": {"$ref": "#/definitions/condition"}, "minItems": 1},
    }
    for key in host_conditions.ANNOTATIONS:
        accepted = host_conditions.accepted(key)
        keys[key] = in_yaml(accepted.json(), accepted.expects)
    written: Properties = {key: {**keys[key], **described(about)} for key, about in _ABOUT.items()}
    condition = _one_of(written, {"command": ["read_only", "reads"]})
    several = one_or_more({"$ref": "#/definitions/condition"})
    return {"condition": condition, "conditions": several, "items": _items(keys)}


def _items(keys: Properties) -> JsonSchema:
    """Return the schema of the lists of `for_each_host`.

    :param keys: the schemas of the keys that conditions have as well
    """
    number = in_yaml({"type": "integer", "minimum": 0}, "a number")
    users = closed({"min_uid": number, "max_uid": number, "group": keys["group"]})
    own: Properties = {
        **keys,
        "glob": keys["path"],
        "users": {"anyOf": [users, {"type": "null"}]},
        "mounts": {"anyOf": [closed({"type": one_or_more({"type": "string"})}), {"type": "null"}]},
    }
    written: Properties = {key: {**own[key], **described(about)} for key, about in _ABOUT_LISTS.items()}
    return _one_of(written, {"command": ["read_only", "reads"], "is": ["glob"]})


def _one_of(keys: Properties, dependencies: dict[str, list[str]]) -> JsonSchema:
    """Return the schema of a map with at least one of some keys; `dependencies` are keys that require others."""
    return {**closed(keys), "minProperties": 1, "dependencies": dependencies}
