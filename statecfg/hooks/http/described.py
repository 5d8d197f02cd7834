"""The object that HTTP hooks receive for a playbook on a host, and the check that it has no secrets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.hooks.http import conditions
from statecfg.hooks.http.children import API_VERSION, Children
from statecfg.hooks.http.held import MARKERS
from statecfg.hooks.registration.model import Registration, Selector
from statecfg.store import hosts
from statecfg.store.objects import Reconciled

if TYPE_CHECKING:
    from statecfg.graph.graph import Graph
    from statecfg.store.database import Store

Json = dict[str, Any]


def described(store: Store, known: Reconciled) -> Json:
    """Return the object of a request: the playbook on the host with its status, as a Kubernetes object."""
    record = hosts.get(store, known.host)
    metadata: Json = {
        "name": known.host,
        "namespace": known.playbook,
        "labels": dict.fromkeys(record.tags if record is not None else (), ""),
        "annotations": {
            key: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            for key, value in (record.metadata if record is not None else {}).items()
        },
        "generation": known.generation,
        "creationTimestamp": conditions.moment(known.created),
        "finalizers": known.finalizers,
    }
    if known.deleted is not None:
        metadata["deletionTimestamp"] = conditions.moment(known.deleted)
    return {
        "apiVersion": API_VERSION,
        "kind": "Playbook",
        "metadata": metadata,
        "spec": dict(known.spec),
        "status": dict(known.status),
    }


def digest(spec: Json, graph: Graph, secrets: Mapping[str, str]) -> str:
    """Return the SHA-256 of a definition: its spec and all of its nodes."""
    every = Children(graph, Registration("", "http", (), Selector()), secrets)
    text = json.dumps([spec, every.sent], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def leak(given: Json, children: Mapping[str, Any] | None, secrets: Mapping[str, str]) -> str | None:
    """Return why a request must not be sent: a value contains a secret. Return None if it may be sent.

    Names and keys are not checked.
    """
    specs = [given.get("spec"), *(child.get("spec") for child in (children or {}).values())]
    texts = list(_texts(specs))
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
