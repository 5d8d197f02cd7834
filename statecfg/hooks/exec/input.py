"""The input of an exec hook: the host as Razor's `node`, the playbook as its `policy`. Source: the Razor document."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict, cast

if TYPE_CHECKING:
    from statecfg.store.hooks.records import Configuration, HookedNode, HookObject, Policy
    from statecfg.store.hosts import HostRecord

# Key of hw_info → the facts that may have its value; the first existing one is used.
_HARDWARE = {
    "mac": ("macs", "macaddress"),
    "serial": ("serial", "serialnumber"),
    "asset": ("asset", "assettag"),
    "uuid": ("uuid", "product_uuid"),
}


class HookDescription(TypedDict):
    """A program's input about its hook. `cause` is the event."""

    id: int
    name: str
    type: str
    configuration: Configuration
    cause: str


def node(host: HostRecord) -> HookedNode:
    """Return a host as Razor's API shows a node. Empty values are left out, except the metadata."""
    values = {
        "id": host.id,
        "name": host.name,
        "hw_info": _hardware(host.facts),
        "tags": list(host.tags),
        "facts": dict(host.facts),
        "state": _filled({"installed": host.installed or False, "installed_at": _time(host.installed_at)}),
        "hostname": host.facts.get("hostname"),
        "last_checkin": _time(host.last_checkin),
    }
    return cast("HookedNode", {**_filled(values), "metadata": dict(host.metadata)})


def policy(playbook: str, bound: int) -> Policy:
    """Return a playbook as Razor's API shows a policy.

    :param bound: number of hosts to which it is bound
    """
    return {"id": playbook, "name": playbook, "enabled": True, "tags": [], "nodes": {"count": bound}}


def hook(object: HookObject, event: str) -> HookDescription:
    """Return a program's input about its hook."""
    return {
        "id": object.id,
        "name": object.name,
        "type": object.type,
        "configuration": dict(object.configuration),
        "cause": event,
    }


def playbook_of(host: HostRecord, playbook: str | None) -> str | None:
    """Return the playbook of an event: the given one, else the installed one, else the first bound one."""
    installed = host.installed if host.installed in host.playbooks else None
    return playbook or installed or next(iter(host.playbooks), None)


def _hardware(facts: Mapping[str, Any]) -> dict[str, str | list[str]]:
    hardware: dict[str, str | list[str]] = {}
    for key, names in _HARDWARE.items():
        value = next((facts[name] for name in names if facts.get(name)), None)
        if key == "mac" and value is not None:
            addresses = value if isinstance(value, list) else [value]
            hardware[key] = [str(address).lower().replace(":", "-") for address in addresses]
        elif value is not None:
            hardware[key] = str(value).lower()
    return hardware


def _filled(values: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None and value not in ("", [], {})}


def _time(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(int(at), UTC).isoformat()
