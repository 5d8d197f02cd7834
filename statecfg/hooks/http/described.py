"""The object that HTTP hooks receive for a playbook on a host, and the check that it has no secrets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NotRequired, TypedDict

from statecfg.graph.graph import Graph
from statecfg.hooks.http import conditions
from statecfg.hooks.http.children import API_VERSION, Child, HookChildren
from statecfg.hooks.http.held import MARKERS
from statecfg.hooks.registration.model import Registration, Selector
from statecfg.store import hosts
from statecfg.store.database import Store
from statecfg.store.objects import Reconciled


class ObjectMetadata(TypedDict):
    """The metadata of a Kubernetes object. `name` is the host, `namespace` the playbook, `labels` the host's tags."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    generation: int
    creationTimestamp: str
    finalizers: list[str]
    deletionTimestamp: NotRequired[str]


class Described(TypedDict):
    """A playbook on a host, as a Kubernetes object."""

    apiVersion: str
    kind: str
    metadata: ObjectMetadata
    spec: Mapping[str, Any]
    status: Mapping[str, Any]


def described(store: Store, object: Reconciled) -> Described:
    """Return the object of a request: the playbook on the host with its status."""
    record = hosts.get(store, object.host)
    metadata: ObjectMetadata = {
        "name": object.host,
        "namespace": object.playbook,
        "labels": dict.fromkeys(record.tags if record is not None else (), ""),
        "annotations": {
            key: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            for key, value in (record.metadata if record is not None else {}).items()
        },
        "generation": object.generation,
        "creationTimestamp": conditions.moment(object.created),
        "finalizers": object.finalizers,
    }
    if object.deleted is not None:
        metadata["deletionTimestamp"] = conditions.moment(object.deleted)
    return {
        "apiVersion": API_VERSION,
        "kind": "Playbook",
        "metadata": metadata,
        "spec": dict(object.spec),
        "status": dict(object.status),
    }


def described_new(playbook: str, host: str, spec: Mapping[str, Any], now: float) -> Described:
    """Return the object of a dry run: the playbook on the host, without what the store knows of it."""
    metadata: ObjectMetadata = {
        "name": host, "namespace": playbook, "labels": {}, "annotations": {}, "generation": 1,
        "creationTimestamp": conditions.moment(now), "finalizers": [],
    }  # fmt: skip
    return {"apiVersion": API_VERSION, "kind": "Playbook", "metadata": metadata, "spec": spec, "status": {}}


def digest(spec: Mapping[str, Any], graph: Graph, secrets: Mapping[str, str]) -> str:
    """Return the SHA-256 of a definition: its spec and all of its nodes."""
    children = HookChildren(graph, Registration("", (), Selector()), secrets)
    text = json.dumps([spec, children.sent], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def leak(sent: Described, children: Mapping[str, Child] | None, secrets: Mapping[str, str]) -> str | None:
    """Return why a request must not be sent: a value contains a secret. Return None if it may be sent.

    Names and keys are not checked.
    """
    texts = list(_texts([sent["spec"], *(child["spec"] for child in (children or {}).values())]))
    for name, value in secrets.items():
        if any(value in text for text in texts):
            return f"the secret {name} is part of a value, which can't be sent to a hook"
    return None


def _texts(value: Any) -> Iterator[str]:
    """Yield the strings of JSON data, without keys and without the markers of withheld values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and not any(key in value for key in MARKERS):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
