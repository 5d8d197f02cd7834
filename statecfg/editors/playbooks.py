"""The JSON Schemas of playbooks and of the files that they include."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from statecfg.dialects import yaml, yaml_entry, yaml_loops
from statecfg.editors import conditions, values
from statecfg.editors.values import (
    ANYTHING,
    NOTHING,
    about_type,
    attribute,
    closed,
    described,
    in_yaml,
    names,
    one_or_more,
    template,
)
from statecfg.graph import schema
from statecfg.graph.json_schema import JsonSchema, Properties
from statecfg.playbook.role import TYPES
from statecfg.playbook.service_options import KEYS as OPTION_KEYS
from statecfg.playbook.service_options import TYPES as OPTION_TYPES
from statecfg.remote.graph.nodetype import OPTIONS, NodeType

_NAME = r"^[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*$"
_END = r"^[a-z][a-z0-9-]*:[a-z][a-z0-9_-]*$"
_VARIABLE = r"^(?!host$)[^\W\d]\w*$"
_NEEDED = "The entry has no node type. Begin it with one, such as `- package: nginx`."

_ABOUT = {
    "provides": "The name of the node. Default: `type:argument`.",
    "requires": "Names of nodes that are processed before this one, or references such as `tag:web`.",
    "restart_on": "Requirements that trigger this node when they change.",
    "tags": "Names for `--tags`, and for references.",
    "protect": "`true`: no run removes this resource.",
    "allow_lockout": "`true`: the node may take away the login that statecfg itself uses.",
    "take_over": "`true`: manage this object although another playbook manages it. That playbook no longer owns it.",
    "when_host": "A condition, or a list of them, which the host checks at the node's turn. If one is false, the node "
    "does nothing there.",
    "for_each_host": "A list that the host makes at the node's turn, such as `{glob: /etc/app/*.conf}`. The node is "
    "repeated for each of its items: `{{ host_item }}`.",
    "when": "An expression that gives true or false. If it gives false, the entry is skipped.",
    "for_each": "A list or map, or an expression that gives one. The entry is repeated for each element, as `item`, or "
    "as `key` and `value`.",
    "as": "The name of the element, instead of `item`, `key` and `value`.",
    "label": "A name for all nodes of the loop.",
    "include": "Another file with entries, relative to this one.",
    "vars": "Variables. A variable can use those above it.",
    "resources": "The nodes: each entry begins with a node type and its argument.",
    "hosts": "A host, a group or a pattern, or a list of them.",
    "name": "The name of the play.",
    "prune": "`true`: every apply removes resources that are no longer defined.",
    "service": "The name of a service. Each of its hosts has one unit.",
    "charm": "Directory with the hooks of the service, relative to the playbook.",
    "schema": "The options of the service: their types, defaults and descriptions.",
    "settings": "The values of the options.",
    "timeout": "The time limit of each hook, as an ISO 8601 duration such as `PT5M`.",
    "playbook": "Another playbook, whose nodes are added for the hosts.",
    "relations": "Relations between services, such as `[web:db, db:db]`.",
}


Types = Mapping[str, NodeType[...]]


def playbook(types: Types, known: Iterable[str] = (), hosts: Iterable[str] = ()) -> JsonSchema:
    """Return the schema of playbooks.

    :param types: the node types by name
    :param known: names of nodes to suggest in requirements
    :param hosts: names of hosts and groups to suggest
    """
    definition: JsonSchema = {"$ref": "#/definitions/definition"}
    return {
        "if": {"type": "array"},
        "then": {"type": "array", "items": definition},
        "else": definition,
        "definitions": {**_definitions(types, known), **_plays(hosts)},
    }


def included(types: Types, known: Iterable[str] = ()) -> JsonSchema:
    """Return the schema of files that playbooks include: a list of entries, or a map with `vars` and `resources`.

    The parameters are those of `playbook`.
    """
    keys = {"vars": _variables(), "resources": _resources()}
    return {
        "if": {"type": "object"},
        "then": closed(keys),
        "else": _resources(),
        "definitions": _definitions(types, known),
    }


def role(types: Types, known: Iterable[str] = ()) -> JsonSchema:
    """Return the schema of `role.yml`. The parameters are those of `playbook`."""
    name: JsonSchema = {"pattern": _VARIABLE, "patternErrorMessage": "This can't be the name of a parameter."}
    parameter = closed(
        {
            "type": {"enum": [*TYPES], **described("The type of the values. Default: `any`.")},
            "default": {**ANYTHING, **described("The value if the include passes none. It may be a template.")},
            "required": {"type": "boolean", **described("`true`: each include must pass a value.")},
            "secret": {"type": "boolean", **described("`true`: the value must be a secret.")},
            "choices": {"type": "array", **described("The allowed values.")},
            "description": {"type": "string", **described("What the parameter means, for the page of the role.")},
        }
    )
    keys: Properties = {
        "description": {"type": "string", **described("What the role does, for its page.")},
        "templates": {
            "enum": ["ansible"], **described("Render the role's templates as Ansible does, with its names of facts."),
        },
        "params": {
            "type": ["object", "null"], "propertyNames": name, "additionalProperties": parameter,
            **described("The parameters: name, and its type, default and description."),
        },
        "vars": _variables(),
        "resources": _resources(),
    }  # fmt: skip
    return {**closed(keys), "definitions": _definitions(types, known)}


def _variables() -> JsonSchema:
    name: JsonSchema = {"pattern": _VARIABLE, "patternErrorMessage": "This can't be the name of a variable."}
    return {"type": ["object", "null"], "propertyNames": name, **described(_ABOUT["vars"])}


def _resources() -> JsonSchema:
    return {"type": ["array", "null"], "items": {"$ref": "#/definitions/entry"}, **described(_ABOUT["resources"])}


def _having(key: str) -> JsonSchema:
    """Return the condition that a map has a key."""
    return {"type": "object", "required": [key]}


def _plays(hosts: Iterable[str]) -> Properties:
    written = one_or_more(names(hosts), _ABOUT["hosts"])
    keys: Properties = {
        "name": {"type": "string", **described(_ABOUT["name"])},
        "hosts": written,
        "vars": _variables(),
        "prune": {"type": "boolean", **described(_ABOUT["prune"])},
        "resources": _resources(),
        "include": one_or_more({"type": "string"}, _ABOUT["include"]),
    }
    of_service: Properties = {
        "service": {"type": "string", "pattern": _NAME, **described(_ABOUT["service"])},
        "charm": {"type": "string", **described(_ABOUT["charm"])},
        "schema": {"type": "object", "additionalProperties": _option(), **described(_ABOUT["schema"])},
        "settings": {"type": "object", **described(_ABOUT["settings"])},
        "timeout": {"type": "string", "pattern": "^P", **described(_ABOUT["timeout"])},
        "playbook": {"type": "string", **described(_ABOUT["playbook"])},
    }
    relation: JsonSchema = {"type": "array", "items": {"type": "string", "pattern": _END}, "minItems": 1, "maxItems": 2}
    relations: JsonSchema = {"type": "array", "items": relation, **described(_ABOUT["relations"])}
    # A map without one of these keys is a play. Its schema contains them only so that editors suggest them.
    others: Properties = {key: {**ANYTHING, **described(_ABOUT[key])} for key in ("service", "relations")}
    return {
        "definition": {
            "if": _having("relations"),
            "then": closed({"relations": relations}),
            "else": {
                "if": _having("service"),
                "then": closed({key: {**keys, **of_service}[key] for key in yaml.SERVICE_KEYS}, ["service", "hosts"]),
                "else": closed({**{key: keys[key] for key in yaml.KEYS}, **others}, ["hosts"]),
            },
        }
    }


def _option() -> JsonSchema:
    parts: Properties = {"type": {"enum": list(OPTION_TYPES)}, "default": {}, "description": {"type": "string"}}
    return closed({key: parts[key] for key in OPTION_KEYS})


def _definitions(types: Types, known: Iterable[str]) -> Properties:
    requirement = names(known)
    return {
        **values.definitions(),
        **conditions.definitions(),
        "names": one_or_more(requirement),
        "entry": _entry(types),
        **{f"type {name}": _type(node_type) for name, node_type in types.items()},
    }


def _control(taken: Collection[str] = ()) -> Properties:
    keys: Properties = {
        "when": {"type": ["boolean", "string"]},
        "for_each": {"type": ["array", "object", "string"]},
        "as": {"type": "string", "pattern": r"^[^\W\d]\w*$"},
        "label": {"type": "string"},
    }
    return {
        key: {**keys[key], **described(_ABOUT[key])}
        for key in yaml_entry.CONTROL
        if key not in taken or key not in yaml_loops.KEYS
    }


def _options() -> Properties:
    schemas: Properties = {
        "provides": {"type": "string"},
        # A description next to `$ref` would be ignored in this version of JSON Schema.
        "requires": {"anyOf": [{"$ref": "#/definitions/names"}]},
        "restart_on": {"anyOf": [{"$ref": "#/definitions/names"}]},
        "tags": one_or_more({"type": "string"}),
        "protect": in_yaml({"type": "boolean"}, "true or false"),
        "allow_lockout": in_yaml({"type": "boolean"}, "true or false"),
        "take_over": in_yaml({"type": "boolean"}, "true or false"),
        "when_host": {"anyOf": [{"$ref": "#/definitions/conditions"}]},
        "for_each_host": {"anyOf": [{"$ref": "#/definitions/items"}]},
    }
    return {key: {**schemas[key], **described(_ABOUT[key])} for key in OPTIONS}


def _entry(types: Types) -> JsonSchema:
    """Return the schema of an entry: a chain of conditions, each for the entries of one node type.

    Attributes can have the names of node types, such as `user`. So a type comes before the types that its attributes
    are named after.
    """
    control = _control()
    decided: Properties = {**control, "when_host": _options()["when_host"]}
    block: Properties = {"resources": _resources(), **decided}
    include: Properties = {
        "include": {"type": "string", **described(_ABOUT["include"])},
        "vars": _variables(),
        **decided,
    }
    unfinished: Properties = {
        **{name: {**ANYTHING, **about_type(node_type.__doc__)} for name, node_type in types.items()},
        "include": {**ANYTHING, **described(_ABOUT["include"])},
        "resources": _resources(),
        **control,
    }
    needed: JsonSchema = {"type": "null", "errorMessage": _NEEDED, "doNotSuggest": True}
    chain: JsonSchema = {"allOf": [{"properties": unfinished, "additionalProperties": False}, needed]}
    chain = {"if": _having("resources"), "then": closed(block), "else": chain}
    for name in reversed(_ordered(types)):
        chain = {"if": _having(name), "then": {"$ref": f"#/definitions/type {name}"}, "else": chain}
    entry: JsonSchema = {"if": _having("include"), "then": closed(include), "else": chain}
    return {"type": "object", "errorMessage": _NEEDED, **entry}


def _ordered(types: Types) -> list[str]:
    """Return the names of types; a type comes before those that its attributes are named after."""
    done: dict[str, None] = {}

    def visit(name: str, around: tuple[str, ...]) -> None:
        for other in sorted(types):
            if name in schema.of(types[other]).fields and other != name and other not in (*done, *around):
                visit(other, (*around, name))
        done[name] = None

    for name in sorted(types):
        if name not in done:
            visit(name, ())
    return list(done)


def _type(node_type: NodeType[...]) -> JsonSchema:
    """Return the schema of the entries of a node type."""
    found = schema.of(node_type)
    written = schema.json_schema(node_type)["properties"]
    attributes = {
        name: attribute(field, written[name], name in found.required)
        for name, field in found.fields.items()
        if name not in found.arguments
    }
    first: JsonSchema = {**_argument(found, written), **about_type(node_type.__doc__)}
    required = [name for name in found.required if name not in found.arguments]
    # The name of the type comes last: it wins over an attribute with the same name.
    keys: Properties = {**_control(found.fields), **_options(), **attributes, node_type.name: first}
    return closed(keys, [node_type.name, *required])


def _argument(found: schema.TypedSchema, written: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return the schema of the value of a type's own key: its argument, or a list of its arguments."""
    parts = [attribute(found.fields[name], written[name], True) for name in found.arguments]
    for part in parts:
        part.pop("default", None)
    if not parts:
        return {"anyOf": [NOTHING]}
    if len(parts) == 1:
        return parts[0]
    fewest = sum(name in found.required for name in found.arguments)
    several: JsonSchema = {"type": "array", "items": parts, "minItems": fewest, "maxItems": len(parts)}
    return {"anyOf": [several, template("a list")] if fewest > 1 else [parts[0], several]}
