"""Registrations of HTTP services: `spec.hook` and `spec.workload`, as in Scoby."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import SplitResult, urlsplit

from statecfg.dialects import yaml_tree
from statecfg.dialects.yaml_tree import Mapping, Scalar, describe
from statecfg.hooks.registration import model
from statecfg.hooks.registration.model import HttpHook, Reference, Registration
from statecfg.hooks.registration.values import map_of, text_of, texts_of
from statecfg.problems import Problem, durations, problem, report, suggest
from statecfg.remote.hooks.on_failure import RETRY

HOOK_KEYS = ("version", "address", "timeout", "capabilities")
REF_KEYS = ("apiVersion", "kind", "name", "namespace")
WORKLOAD_KEYS = ("formFactor", "children", "statusConfiguration", "fromImage", "parameterConfiguration")
FORM_FACTORS = {"knativeService": "ksvc"}  # key of the registration → name in requests, if they differ


def read(spec: Mapping) -> Registration:
    """Return the registration of a service, without its name; report its errors."""
    warnings: list[Problem] = []
    if "events" in spec.items:
        help = "hook.capabilities says when it is called"
        report(problem("SC0311", "an HTTP hook has no `events:`", help, spec.keys["events"].location))
    made = HttpHook(None, None)
    found = map_of(spec, "hook", "hook: {version: v1, address: {uri: http://…}, capabilities: [pre-reconcile]}")
    if found is not None:
        yaml_tree.check_keys(found, "`hook:`", HOOK_KEYS)
        _version(found)
        uri, ref = _address(found)
        capabilities = _capabilities(found, warnings)
        made = HttpHook(uri, ref, _timeout(found, warnings), capabilities)
    workload = map_of(spec, "workload", "workload: {formFactor: {deployment: {}}}")
    if workload is not None:
        yaml_tree.check_keys(workload, "`workload:`", WORKLOAD_KEYS)
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
        on_failure=RETRY,
        http=made,
        warnings=tuple(sorted(warnings, key=lambda item: item.places)),
    )


def _version(hook: Mapping) -> None:
    node = hook.items.get("version")
    if node is None:
        report(problem("SC0602", "`hook:` lacks its `version:`", "write version: v1", hook.location))
    elif not isinstance(node, Scalar) or node.tag is not None or node.value not in ("v1", 1) or node.value is True:
        report(problem("SC0603", f"`version` is {describe(node)}", "the one version there is: v1", node.location))


def _timeout(hook: Mapping, warnings: list[Problem]) -> float:
    given = text_of(hook, "timeout")
    try:
        durations.seconds(given or "PT0S")
    except ValueError as error:
        detail = f"timeout: {error}, so it is {durations.DEFAULT_TIMEOUT:g} s, as in Scoby"
        warnings.append(problem("SC0605", detail, durations.HELP, hook.items["timeout"].location))
    return durations.timeout(given or None)


def _capabilities(hook: Mapping, warnings: list[Problem]) -> tuple[str, ...]:
    given = texts_of(hook, "capabilities")
    node = hook.items.get("capabilities")
    place = hook.location if node is None else node.location
    for name in given:
        if name not in model.CAPABILITIES:
            help = suggest(name, model.CAPABILITIES, "there are")
            warnings.append(problem("SC0608", f"`{name}` is not a known capability, so it is ignored", help, place))
    known = tuple(name for name in model.CAPABILITIES if name in given)
    if not known:
        help = f"capabilities: [{', '.join(model.CAPABILITIES)}]"
        warnings.append(problem("SC0608", "it has no capability, so it is never called", help, place))
    return known


def _address(hook: Mapping) -> tuple[str | None, Reference | None]:
    found = map_of(hook, "address", "address: {uri: http://HOST:PORT/PATH}", needed=True)
    if found is None:
        return None, None
    yaml_tree.check_keys(found, "`address:`", ("uri", "ref"))
    uri = text_of(found, "uri") or None
    ref = _reference(found)
    if uri is None and "ref" not in found.items:
        report(problem("SC0606", "ref or uri should be informed", "write uri: http://HOST:PORT/PATH", found.location))
    if uri is not None:
        wrong = _wrong_uri(uri, "ref" in found.items)
        if wrong is not None:
            report(problem("SC0606", wrong[0], wrong[1], found.items["uri"].location))
    return uri, ref


def _wrong_uri(uri: str, with_ref: bool) -> tuple[str, str] | None:
    """Return the problem of a URI and its fix; None if it is valid."""
    try:
        parts: SplitResult = urlsplit(uri)
        host, _ = parts.hostname, parts.port  # reading the port checks it
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
    found = map_of(address, "ref", "ref: {apiVersion: v1, kind: Service, name: NAME, namespace: NAMESPACE}")
    if found is None:
        return None
    yaml_tree.check_keys(found, "`ref:`", REF_KEYS)
    kind, name = text_of(found, "kind", needed=True), text_of(found, "name", needed=True)
    version = text_of(found, "apiVersion")
    made = Reference(kind, name, text_of(found, "namespace"), version)
    if (version, kind) == ("v1", "Service") and not made.namespace:
        help = "add namespace: NAMESPACE; Scoby does not find such a Service either"
        report(problem("SC0606", f"the Service {name} has no namespace", help, found.location))
    return made


def _form_factor(workload: Mapping) -> str:
    found = map_of(workload, "formFactor", "formFactor: {deployment: {}}")
    if found is None or not found.items:
        return model.FORM_FACTOR
    if len(found.items) > 1:
        names = ", ".join(found.items)
        report(problem("SC0603", f"`formFactor` names several: {names}", "keep one of them", found.location))
    name = next(iter(found.items))
    return FORM_FACTORS.get(name, name)


def _children(workload: Mapping) -> dict[str, str]:
    found = map_of(workload, "children", 'children: {deployment: "deployment:web"}')
    return {} if found is None else {key: text_of(found, key, needed=True) for key in found.items}


def _conditions(workload: Mapping) -> tuple[str, ...]:
    found = map_of(workload, "statusConfiguration", "statusConfiguration: {conditionsFromHook: [{type: NAME}]}")
    if found is None:
        return ()
    yaml_tree.check_keys(found, "`statusConfiguration:`", ("conditionsFromHook", "add"))
    node = found.items.get("conditionsFromHook")
    given = yaml_tree.sequence(node, "`conditionsFromHook:`", "[{type: NAME}]") if node is not None else None
    types = []
    for item in given.items if given is not None else ():
        each = yaml_tree.mapping(item, "a condition", "{type: NAME}")
        if each is not None:
            yaml_tree.check_keys(each, "a condition", ("type",))
            types.append(text_of(each, "type", needed=True))
    return tuple(dict.fromkeys(types))
