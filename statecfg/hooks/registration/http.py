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
from statecfg.remote.graph.on_failure import RETRY

HOOK_KEYS = ("version", "address", "timeout", "capabilities")
REF_KEYS = ("apiVersion", "kind", "name", "namespace")
WORKLOAD_KEYS = ("formFactor", "children", "statusConfiguration", "fromImage", "parameterConfiguration")
FORM_FACTORS = {"knativeService": "ksvc"}  # key of the registration → name in requests, if they differ


def read(spec: Mapping) -> Registration:
    """Return the registration of a service, without its name; report its errors."""
    warnings: list[Problem] = []
    if "events" in spec.items:
        help = "hook.capabilities defines when it is called"
        report(problem("SC0311", "an HTTP hook has no `events:`", help, spec.keys["events"].location))
    http_hook = HttpHook(None, None)
    hook = map_of(spec, "hook", "hook: {version: v1, address: {uri: http://…}, capabilities: [pre-reconcile]}")
    if hook is not None:
        yaml_tree.check_keys(hook, "`hook:`", HOOK_KEYS)
        _version(hook)
        uri, ref = _address(hook)
        capabilities = _capabilities(hook, warnings)
        dry_run = model.DRY_RUN in texts_of(hook, "capabilities")
        http_hook = HttpHook(uri, ref, _timeout(hook, warnings), capabilities, dry_run=dry_run)
    workload = map_of(spec, "workload", "workload: {formFactor: {deployment: {}}}")
    if workload is not None:
        yaml_tree.check_keys(workload, "`workload:`", WORKLOAD_KEYS)
        http_hook = replace(
            http_hook,
            form_factor=_form_factor(workload),
            children=_children(workload),
            conditions=_conditions(workload),
        )
    return Registration(
        "",
        http_hook.capabilities,
        deadline=model.HTTP_DEADLINE,
        on_failure=RETRY,
        http=http_hook,
        warnings=tuple(sorted(warnings, key=lambda item: item.locations)),
    )


def _version(hook: Mapping) -> None:
    node = hook.items.get("version")
    if node is None:
        report(problem("SC0602", "`hook:` needs `version:`", "write version: v1", hook.location))
    elif not isinstance(node, Scalar) or node.tag is not None or node.value not in ("v1", 1) or node.value is True:
        report(problem("SC0603", f"`version` is {describe(node)}", "the only version is v1", node.location))


def _timeout(hook: Mapping, warnings: list[Problem]) -> float:
    text = text_of(hook, "timeout")
    try:
        durations.seconds(text or "PT0S")
    except ValueError as error:
        detail = f"timeout: {error}, so it is {durations.DEFAULT_TIMEOUT:g} s, as in Scoby"
        warnings.append(problem("SC0605", detail, durations.HELP, hook.items["timeout"].location))
    return durations.timeout(text or None)


def _capabilities(hook: Mapping, warnings: list[Problem]) -> tuple[str, ...]:
    names = texts_of(hook, "capabilities")
    node = hook.items.get("capabilities")
    location = hook.location if node is None else node.location
    for name in names:
        if name not in (*model.CAPABILITIES, model.DRY_RUN):
            help = suggest(name, (*model.CAPABILITIES, model.DRY_RUN), "available")
            warnings.append(problem("SC0608", f"`{name}` is not a known capability, so it is ignored", help, location))
    capabilities = tuple(name for name in model.CAPABILITIES if name in names)
    if not capabilities:
        help = f"capabilities: [{', '.join(model.CAPABILITIES)}]"
        warnings.append(problem("SC0608", "it has no capability, so it is never called", help, location))
    return capabilities


def _address(hook: Mapping) -> tuple[str | None, Reference | None]:
    address = map_of(hook, "address", "address: {uri: http://HOST:PORT/PATH}", needed=True)
    if address is None:
        return None, None
    yaml_tree.check_keys(address, "`address:`", ("uri", "ref"))
    uri = text_of(address, "uri") or None
    ref = _reference(address)
    if uri is None and "ref" not in address.items:
        report(problem("SC0606", "ref or uri should be informed", "write uri: http://HOST:PORT/PATH", address.location))
    if uri is not None:
        uri_problem = _uri_problem(uri, "ref" in address.items)
        if uri_problem is not None:
            report(problem("SC0606", uri_problem[0], uri_problem[1], address.items["uri"].location))
    return uri, ref


def _uri_problem(uri: str, with_ref: bool) -> tuple[str, str] | None:
    """Return the problem of a URI and its fix; None if it is valid."""
    try:
        parts: SplitResult = urlsplit(uri)
        host, _ = parts.hostname, parts.port  # reading the port checks it
    except ValueError as error:
        return f"URI cannot be parsed: {error}", "write http://HOST:PORT/PATH"
    if parts.username is not None or parts.password is not None:
        return "the URI contains a user or a password, which logs would show", "remove it"
    if with_ref and host:
        text = f'URI should not contain a host while also informing a Reference: "{uri}"'
        return text, "remove the host (http://:8080/path), or the ref"
    if parts.scheme not in ("http", "https") and (parts.scheme or not with_ref):
        return f"`{uri}` is not an http or https URL", "write http://HOST:PORT/PATH"
    if not with_ref and not host:
        return f"`{uri}` has no host", "write http://HOST:PORT/PATH, or add a ref"
    return None


def _reference(address: Mapping) -> Reference | None:
    ref = map_of(address, "ref", "ref: {apiVersion: v1, kind: Service, name: NAME, namespace: NAMESPACE}")
    if ref is None:
        return None
    yaml_tree.check_keys(ref, "`ref:`", REF_KEYS)
    kind, name = text_of(ref, "kind", needed=True), text_of(ref, "name", needed=True)
    version = text_of(ref, "apiVersion")
    reference = Reference(kind, name, text_of(ref, "namespace"), version)
    if (version, kind) == ("v1", "Service") and not reference.namespace:
        help = "add namespace: NAMESPACE; Scoby does not find such a Service either"
        report(problem("SC0606", f"the Service {name} has no namespace", help, ref.location))
    return reference


def _form_factor(workload: Mapping) -> str:
    factors = map_of(workload, "formFactor", "formFactor: {deployment: {}}")
    if factors is None or not factors.items:
        return model.FORM_FACTOR
    if len(factors.items) > 1:
        names = ", ".join(factors.items)
        report(problem("SC0603", f"`formFactor` has several names: {names}", "keep one of them", factors.location))
    name = next(iter(factors.items))
    return FORM_FACTORS.get(name, name)


def _children(workload: Mapping) -> dict[str, str]:
    children = map_of(workload, "children", 'children: {deployment: "deployment:web"}')
    return {} if children is None else {key: text_of(children, key, needed=True) for key in children.items}


def _conditions(workload: Mapping) -> tuple[str, ...]:
    configuration = map_of(workload, "statusConfiguration", "statusConfiguration: {conditionsFromHook: [{type: NAME}]}")
    if configuration is None:
        return ()
    yaml_tree.check_keys(configuration, "`statusConfiguration:`", ("conditionsFromHook", "add"))
    node = configuration.items.get("conditionsFromHook")
    entries = yaml_tree.sequence(node, "`conditionsFromHook:`", "[{type: NAME}]") if node is not None else None
    types = []
    for item in entries.items if entries is not None else ():
        condition = yaml_tree.mapping(item, "a condition", "{type: NAME}")
        if condition is not None:
            yaml_tree.check_keys(condition, "a condition", ("type",))
            types.append(text_of(condition, "type", needed=True))
    return tuple(dict.fromkeys(types))
