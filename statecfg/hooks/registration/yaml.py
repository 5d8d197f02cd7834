"""Registrations in YAML, in the shape of Kubernetes objects. Those of Scoby are accepted unchanged."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from statecfg.dialects import yaml_tree
from statecfg.dialects.yaml_tree import Mapping, Scalar, YamlNode, describe
from statecfg.hooks.registration import http as registration_http
from statecfg.hooks.registration import model
from statecfg.hooks.registration.model import ExecHook, Registration, Selector
from statecfg.hooks.registration.values import choice_of, map_of, text_of, texts_of
from statecfg.problems import durations, problem, report
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.events import HostEvent
from statecfg.remote.graph.names import ResourceEvent
from statecfg.remote.graph.on_failure import RULES

SHAPE = "a registration: metadata: {name: NAME}, spec: {…}"
TOP_KEYS = ("apiVersion", "kind", "metadata", "spec", "status")
# Further keys of Scoby registrations. They define how Scoby makes children; here, the playbook does that.
SCOBY_KEYS = ("crd", "workload")
OWN_KEYS = ("select", "where", "order", "deadline", "onFailure", "fullControl")
SPEC_KEYS = ("exec", "events", "hook", *OWN_KEYS, *SCOBY_KEYS)
KINDS = ("Hook", "CRDRegistration")
API_VERSIONS = ("statecfg/v1", "scoby.triggermesh.io/v1alpha1")
# Razor's rule for the names of hooks.
NAME = re.compile(r"(?! )[^/\x00-\x1f\x7f]{1,250}(?<! )\Z")
INTEGERS = range(-(2**31), 2**31)


def parse(root: YamlNode) -> Registration | None:
    """Return the registration in a YAML tree, None if there is none; report its errors."""
    top = yaml_tree.mapping(root, "a registration", SHAPE)
    if top is None:
        return None
    yaml_tree.check_keys(top, "a registration", TOP_KEYS)
    choice_of(top, "kind", KINDS)
    choice_of(top, "apiVersion", API_VERSIONS)
    name, position = _name(top)
    spec = map_of(top, "spec", "spec: {hook: {…}} or spec: {exec: {…}, events: […]}", needed=True)
    if spec is None:
        return None
    yaml_tree.check_keys(spec, "`spec:`", SPEC_KEYS)
    protocols = [key for key in ("exec", "hook") if key in spec.items]
    if len(protocols) != 1:
        what = "has both `exec:` and `hook:`" if protocols else "has neither `exec:` nor `hook:`"
        report(problem("SC0602", f"hook {name} {what}", "exec: runs a program, hook: calls a service", spec.location))
        return None
    registration = registration_http.read(spec) if protocols == ["hook"] else _exec(spec)
    return replace(_shared(registration, spec), name=name, position=position)


def _name(top: Mapping) -> tuple[str, SourceLocation]:
    metadata = map_of(top, "metadata", "metadata: {name: NAME}", needed=True)
    if metadata is None:
        return "", top.location
    name = text_of(metadata, "name", needed=True)
    location = metadata.keys["name"].location if "name" in metadata.keys else metadata.location
    if name and not NAME.match(name):
        rule = "write 1 to 250 characters, without `/`, control characters, and spaces at either end"
        report(problem("SC0603", f"a hook can't have the name `{name[:60]}`", rule, location))
    return name, location


def _shared(registration: Registration, spec: Mapping) -> Registration:
    """Return the registration with the keys that both protocols have."""
    where = choice_of(spec, "where", model.WHERE) or registration.where
    location = spec.keys["where"].location if "where" in spec.keys else spec.location
    if where == "host" and registration.protocol == "http":
        report(problem("SC0603", "the controller calls HTTP hooks, not the host", "remove `where:`", location))
    if where == "host" and any(event in HostEvent.ALL for event in registration.events):
        detail = "host events happen on the controller, so `where: host` has no effect on them"
        report(problem("SC0603", detail, f"these happen on hosts: {', '.join(ResourceEvent.ALL)}", location))
    return replace(
        registration,
        select=_selector(spec),
        where=where,
        order=_order(spec),
        deadline=_deadline(spec, registration.deadline),
        on_failure=choice_of(spec, "onFailure", tuple(RULES)) or registration.on_failure,
        full_control=texts_of(spec, "fullControl"),
    )


def _selector(spec: Mapping) -> Selector:
    select = map_of(spec, "select", "select: {types: [file]}")
    if select is None:
        return Selector()
    yaml_tree.check_keys(select, "`select:`", ("hosts", "types", "names", "tags"))
    hosts = ",".join(texts_of(select, "hosts")) or None
    return Selector(hosts, texts_of(select, "types"), texts_of(select, "names"), texts_of(select, "tags"))


def _order(spec: Mapping) -> int:
    node = spec.items.get("order")
    if node is None:
        return model.ORDER
    value = node.value if isinstance(node, Scalar) and node.tag is None else None
    if type(value) is not int or value not in INTEGERS:
        report(problem("SC0603", f"`order` is {describe(node)}", "it must be an integer", node.location))
        return model.ORDER
    return value


def _deadline(spec: Mapping, default: float) -> float:
    text = text_of(spec, "deadline")
    try:
        return durations.deadline(text) if text else default
    except ValueError as error:
        report(problem("SC0605", f"deadline: {error}", durations.HELP, spec.items["deadline"].location))
        return default


# Programs


def _exec(spec: Mapping) -> Registration:
    program = map_of(spec, "exec", "exec: {type: NAME}")
    type = ""
    configuration: dict[str, Any] = {}
    if program is not None:
        yaml_tree.check_keys(program, "`exec:`", ("type", "configuration"))
        type = text_of(program, "type", needed=True)
        settings = map_of(program, "configuration", "configuration: {KEY: VALUE}")
        configuration = yaml_tree.plain(settings) if settings is not None else {}
    events = texts_of(spec, "events", model.EVENTS, "SC0604")
    if "events" not in spec.items:
        help = f"list at least one of: {', '.join(model.EVENTS)}"
        report(problem("SC0602", "`exec:` needs `events:`", help, spec.location))
    if "workload" in spec.items:
        location = spec.keys["workload"].location
        report(problem("SC0311", "only HTTP hooks have `workload:`", "remove it", location))
    return Registration("", events, deadline=model.DEADLINE, exec=ExecHook(type, configuration))
