"""Registrations written in YAML, in the shape that Kubernetes objects have; those of Scoby as they are."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

from statecfg.dialects import yaml_text
from statecfg.dialects.yaml_text import Mapping, Node, Scalar, describe
from statecfg.hooks import durations
from statecfg.hooks import registration as model
from statecfg.hooks.registration import HttpHook, Reference, Registration, Selector
from statecfg.positions import Place
from statecfg.problems import Problem, problem, report, suggest

SHAPE = "a registration: metadata: {name: NAME}, spec: {…}"
TOP_KEYS = ("apiVersion", "kind", "metadata", "spec", "status")
# What a Scoby registration may have beside the hook: it says how Scoby makes children, which is the playbook's matter.
SCOBY_KEYS = ("crd", "workload")
OWN_KEYS = ("select", "where", "order", "deadline", "onFailure", "fullControl")
SPEC_KEYS = ("exec", "events", "hook", *OWN_KEYS, *SCOBY_KEYS)
WORKLOAD_KEYS = ("formFactor", "children", "statusConfiguration", "fromImage", "parameterConfiguration")
HOOK_KEYS = ("version", "address", "timeout", "capabilities")
REF_KEYS = ("apiVersion", "kind", "name", "namespace")
KINDS = ("Hook", "CRDRegistration")
API_VERSIONS = ("statecfg/v1", "scoby.triggermesh.io/v1alpha1")
FORM_FACTORS = {"knativeService": "ksvc"}  # key of the registration → name on the wire, where they differ
# As Razor has it for the names of its hooks.
NAME = re.compile(r"(?! )[^/\x00-\x1f\x7f]{1,250}(?<! )\Z")
INTEGERS = range(-(2**31), 2**31)


def parse(root: Node) -> Registration | None:
    """Make a registration from a YAML tree; report what is wrong with it. None where nothing could be made of it."""
    top = yaml_text.mapping(root, "a registration", SHAPE)
    if top is None:
        return None
    yaml_text.known_keys(top, "a registration", TOP_KEYS)
    _choice(top, "kind", KINDS)
    _choice(top, "apiVersion", API_VERSIONS)
    name, position = _name(top)
    spec = _map(top, "spec", "spec: {hook: {…}} or spec: {exec: {…}, events: […]}", needed=True)
    if spec is None:
        return None
    yaml_text.known_keys(spec, "`spec:`", SPEC_KEYS)
    kinds = [key for key in ("exec", "hook") if key in spec.items]
    if len(kinds) != 1:
        what = "has neither `exec:` nor `hook:`" if not kinds else "has both `exec:` and `hook:`"
        report(problem("SC0602", f"hook {name} {what}", "exec: runs a program, hook: calls a service", spec.place))
        return None
    made = _http(spec) if kinds == ["hook"] else _exec(spec)
    return replace(_shared(made, spec), name=name, position=position)


def _name(top: Mapping) -> tuple[str, Place]:
    metadata = _map(top, "metadata", "metadata: {name: NAME}", needed=True)
    if metadata is None:
        return "", top.place
    name = _text(metadata, "name", needed=True)
    place = metadata.keys["name"].place if "name" in metadata.keys else metadata.place
    if name and not NAME.match(name):
        rule = "1 to 250 characters, none of them `/` or a control character, no space at either end"
        report(problem("SC0603", f"the name of a hook is `{name[:60]}`", rule, place))
    return name, place


def _shared(made: Registration, spec: Mapping) -> Registration:
    """Return the registration with what ours have, whatever the protocol."""
    where = _choice(spec, "where", model.PLACES) or made.where
    place = spec.keys["where"].place if "where" in spec.keys else spec.place
    if where == "host" and made.protocol == "http":
        report(problem("SC0603", "an HTTP hook is called by the controller", "take `where:` out", place))
    if where == "host" and any(event in model.HOST_EVENTS for event in made.events):
        detail = "hosts' events happen on the controller, so `where: host` means nothing for them"
        report(problem("SC0603", detail, f"on hosts there are: {', '.join(model.RESOURCE_EVENTS)}", place))
    return replace(
        made,
        select=_selector(spec),
        where=where,
        order=_order(spec),
        deadline=_deadline(spec, made.deadline),
        failure=_choice(spec, "onFailure", model.FAILURES) or made.failure,
        full_control=_texts(spec, "fullControl"),
    )


def _selector(spec: Mapping) -> Selector:
    found = _map(spec, "select", "select: {types: [file]}")
    if found is None:
        return Selector()
    yaml_text.known_keys(found, "`select:`", ("hosts", "types", "names", "tags"))
    hosts = _texts(found, "hosts")
    return Selector(",".join(hosts) or None, _texts(found, "types"), _texts(found, "names"), _texts(found, "tags"))


def _order(spec: Mapping) -> int:
    node = spec.items.get("order")
    if node is None:
        return model.ORDER
    value = node.value if isinstance(node, Scalar) and node.tag is None else None
    if type(value) is not int or value not in INTEGERS:
        report(problem("SC0603", f"`order` is {describe(node)}", "it must be a whole number", node.place))
        return model.ORDER
    return value


def _deadline(spec: Mapping, default: float) -> float:
    given = _text(spec, "deadline")
    try:
        return durations.deadline(given) if given else default
    except ValueError as error:
        report(problem("SC0605", f"deadline: {error}", durations.HELP, spec.items["deadline"].place))
        return default


# Programs


def _exec(spec: Mapping) -> Registration:
    found = _map(spec, "exec", "exec: {type: NAME}")
    kind = ""
    configuration: dict[str, Any] = {}
    if found is not None:
        yaml_text.known_keys(found, "`exec:`", ("type", "configuration"))
        kind = _text(found, "type", needed=True)
        given = _map(found, "configuration", "configuration: {KEY: VALUE}")
        configuration = yaml_text.plain(given) if given is not None else {}
    events = _texts(spec, "events", model.EVENTS, "SC0604")
    if "events" not in spec.items:
        report(problem("SC0602", "`exec:` lacks its `events:`", f"some of: {', '.join(model.EVENTS)}", spec.place))
    if "workload" in spec.items:
        place = spec.keys["workload"].place
        report(problem("SC0311", "`workload:` belongs to an HTTP hook", "take it out", place))
    return Registration("", "exec", events, deadline=model.DEADLINE, type=kind, configuration=configuration)


# Services


def _http(spec: Mapping) -> Registration:
    warnings: list[Problem] = []
    if "events" in spec.items:
        help = "hook.capabilities says when it is called"
        report(problem("SC0311", "an HTTP hook has no `events:`", help, spec.keys["events"].place))
    made = HttpHook(None, None)
    found = _map(spec, "hook", "hook: {version: v1, address: {uri: http://…}, capabilities: [pre-reconcile]}")
    if found is not None:
        yaml_text.known_keys(found, "`hook:`", HOOK_KEYS)
        _version(found)
        uri, ref = _address(found)
        capabilities = _capabilities(found, warnings)
        made = HttpHook(uri, ref, _timeout(found, warnings), capabilities)
    workload = _map(spec, "workload", "workload: {formFactor: {deployment: {}}}")
    if workload is not None:
        yaml_text.known_keys(workload, "`workload:`", WORKLOAD_KEYS)
        made = replace(
            made,
            form_factor=_form_factor(workload),
            children=_children(workload),
            conditions=_conditions(workload),
        )
    return Registration(
        "",
        "http",
        made.capabilities,
        deadline=model.HTTP_DEADLINE,
        failure="retry",
        http=made,
        warnings=tuple(sorted(warnings, key=lambda item: item.places)),
    )


def _version(hook: Mapping) -> None:
    node = hook.items.get("version")
    if node is None:
        report(problem("SC0602", "`hook:` lacks its `version:`", "write version: v1", hook.place))
    elif not isinstance(node, Scalar) or node.tag is not None or node.value not in ("v1", 1) or node.value is True:
        report(problem("SC0603", f"`version` is {describe(node)}", "the one version there is: v1", node.place))


def _timeout(hook: Mapping, warnings: list[Problem]) -> float:
    given = _text(hook, "timeout")
    try:
        durations.seconds(given or "PT0S")
    except ValueError as error:
        detail = f"timeout: {error}, so it is {durations.DEFAULT_TIMEOUT:g} s, as in Scoby"
        warnings.append(problem("SC0605", detail, durations.HELP, hook.items["timeout"].place))
    return durations.timeout(given or None)


def _capabilities(hook: Mapping, warnings: list[Problem]) -> tuple[str, ...]:
    given = _texts(hook, "capabilities")
    node = hook.items.get("capabilities")
    place = hook.place if node is None else node.place
    for name in given:
        if name not in model.CAPABILITIES:
            help = suggest(name, model.CAPABILITIES, "there are")
            warnings.append(problem("SC0608", f"`{name}` is no capability, so it means nothing", help, place))
    known = tuple(name for name in model.CAPABILITIES if name in given)
    if not known:
        help = f"capabilities: [{', '.join(model.CAPABILITIES)}]"
        warnings.append(problem("SC0608", "it has no capability, so it is never called", help, place))
    return known


def _address(hook: Mapping) -> tuple[str | None, Reference | None]:
    found = _map(hook, "address", "address: {uri: http://HOST:PORT/PATH}", needed=True)
    if found is None:
        return None, None
    yaml_text.known_keys(found, "`address:`", ("uri", "ref"))
    uri = _text(found, "uri") or None
    ref = _reference(found)
    if uri is None and "ref" not in found.items:
        report(problem("SC0606", "ref or uri should be informed", "write uri: http://HOST:PORT/PATH", found.place))
    if uri is not None:
        wrong = _wrong_uri(uri, "ref" in found.items)
        if wrong is not None:
            report(problem("SC0606", wrong[0], wrong[1], found.items["uri"].place))
    return uri, ref


def _wrong_uri(uri: str, with_ref: bool) -> tuple[str, str] | None:
    """Return what is wrong with a URI and what to do; None for nothing."""
    try:
        parts: SplitResult = urlsplit(uri)
        host, _ = parts.hostname, parts.port  # the port is looked at only when it is asked for
    except ValueError as error:
        return f"URI cannot be parsed: {error}", "write http://HOST:PORT/PATH"
    if parts.username is not None or parts.password is not None:
        return "the URI holds a user or a password, which logs would show", "take it out"
    if with_ref and host:
        text = f'URI should not contain a host while also informing a Reference: "{uri}"'
        return text, "leave out the host (http://:8080/path), or the ref"
    if parts.scheme not in ("http", "https") and (parts.scheme or not with_ref):
        return f"`{uri}` is neither http nor https", "write http://HOST:PORT/PATH"
    if not with_ref and not host:
        return f"`{uri}` names no host", "write http://HOST:PORT/PATH, or add a ref"
    return None


def _reference(address: Mapping) -> Reference | None:
    found = _map(address, "ref", "ref: {apiVersion: v1, kind: Service, name: NAME, namespace: NAMESPACE}")
    if found is None:
        return None
    yaml_text.known_keys(found, "`ref:`", REF_KEYS)
    kind, name = _text(found, "kind", needed=True), _text(found, "name", needed=True)
    version = _text(found, "apiVersion")
    made = Reference(kind, name, _text(found, "namespace"), version)
    if (version, kind) == ("v1", "Service") and not made.namespace:
        help = "add namespace: NAMESPACE; Scoby does not find such a Service either"
        report(problem("SC0606", f"the Service {name} has no namespace", help, found.place))
    return made


def _form_factor(workload: Mapping) -> str:
    found = _map(workload, "formFactor", "formFactor: {deployment: {}}")
    if found is None or not found.items:
        return model.FORM_FACTOR
    if len(found.items) > 1:
        names = ", ".join(found.items)
        report(problem("SC0603", f"`formFactor` names several: {names}", "keep one of them", found.place))
    name = next(iter(found.items))
    return FORM_FACTORS.get(name, name)


def _children(workload: Mapping) -> dict[str, str]:
    found = _map(workload, "children", 'children: {deployment: "deployment:web"}')
    return {} if found is None else {key: _text(found, key, needed=True) for key in found.items}


def _conditions(workload: Mapping) -> tuple[str, ...]:
    found = _map(workload, "statusConfiguration", "statusConfiguration: {conditionsFromHook: [{type: NAME}]}")
    if found is None:
        return ()
    yaml_text.known_keys(found, "`statusConfiguration:`", ("conditionsFromHook", "add"))
    node = found.items.get("conditionsFromHook")
    given = yaml_text.sequence(node, "`conditionsFromHook:`", "[{type: NAME}]") if node is not None else None
    types = []
    for item in given.items if given is not None else ():
        each = yaml_text.mapping(item, "a condition", "{type: NAME}")
        if each is not None:
            yaml_text.known_keys(each, "a condition", ("type",))
            types.append(_text(each, "type", needed=True))
    return tuple(dict.fromkeys(types))


# Values


def _map(parent: Mapping, key: str, example: str, needed: bool = False) -> Mapping | None:
    node = parent.items.get(key)
    if node is None:
        if needed:
            report(problem("SC0602", f"it lacks `{key}:`", f"write {example}", parent.place))
        return None
    if isinstance(node, Scalar) and node.value is None and not needed:
        return None
    return yaml_text.mapping(node, f"`{key}:`", example)


def _text(parent: Mapping, key: str, needed: bool = False) -> str:
    """Return a text, "" where there is none; report one that is missing or no text."""
    node = parent.items.get(key)
    if node is None or (isinstance(node, Scalar) and node.value is None and not needed):
        if needed:
            report(problem("SC0602", f"it lacks `{key}:`", f"write {key}: TEXT", parent.place))
        return ""
    if isinstance(node, Scalar) and node.tag is None and isinstance(node.value, str) and (node.value or not needed):
        return node.value
    report(problem("SC0603", f"`{key}` is {describe(node)}", "it must be a text", node.place))
    return ""


def _texts(parent: Mapping, key: str, valid: tuple[str, ...] = (), code: str = "SC0603") -> tuple[str, ...]:
    """Return a list of texts, which one text alone stands for as well; report what is none, or not valid."""
    node = parent.items.get(key)
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return ()
    found: list[Node] | None = [node] if isinstance(node, Scalar) else None
    if found is None:
        given = yaml_text.sequence(node, f"`{key}:`", f"{key}: [NAME, NAME]")
        found = given.items if given is not None else []
    names = []
    for item in found:
        value: Any = item.value if isinstance(item, Scalar) and item.tag is None else None
        if not isinstance(value, str) or not value:
            report(problem("SC0603", f"`{key}` holds {describe(item)}", "it must hold texts", item.place))
        elif valid and value not in valid:
            report(problem(code, f"`{value}` in `{key}:`", suggest(value, valid, "there are"), item.place))
        else:
            names.append(value)
    return tuple(dict.fromkeys(names))


def _choice(parent: Mapping, key: str, valid: tuple[str, ...]) -> str:
    value = _text(parent, key)
    if value and value not in valid:
        help = suggest(value, valid, "one of")
        report(problem("SC0603", f"`{key}` is `{value[:60]}`", help, parent.items[key].place))
        return ""
    return value
