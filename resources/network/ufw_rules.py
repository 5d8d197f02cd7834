"""Rules of ufw: their check, the snapshot and the undo."""

from __future__ import annotations

from collections.abc import Sequence

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.network import ufw_program
from statecfg.resources.shared import records

ONLY_IPV4 = ("ipv6", "igmp")  # protocols for which ufw has no rules of IPv6; the first is IPv6 inside IPv4
LOGS = {None: "", "new": "log", "all": "log-all"}


def clause(attrs: records.Attrs) -> list[str]:
    """Return which packets the rule of a node is about, in the words of ufw."""
    if attrs.get("route"):
        names = (("in", attrs.get("interface")), ("out", attrs.get("out_interface")))
        direction = [word for side, name in names if name is not None for word in (side, "on", name)]
    else:
        direction = [attrs["direction"], *(["on", attrs["interface"]] if attrs.get("interface") is not None else [])]
    # All addresses of a family are `any` in its file.
    addresses = [attrs.get(name) or "any" for name in ("from_address", "to_address")]
    start, end = ("any" if address in ufw_program.ANYWHERE.values() else address for address in addresses)
    source = (start, str(attrs.get("from_port") or "any"), "")
    destination = (end, str(attrs.get("port") or "any"), attrs.get("app") or "")
    return ufw_program.clause(direction, attrs.get("protocol") or "any", source, destination)


def _families(attrs: records.Attrs, world: World) -> list[str]:
    """Return the families of addresses for which the node wants the rule.

    :raises CheckError: if ufw is not installed, or manages no rules for the addresses
    """
    present = ufw_program.families(world)
    addresses = [attrs[name] for name in ("from_address", "to_address") if attrs.get(name) is not None]
    if any(":" in address for address in addresses):
        if "IPv6" not in present:
            raise CheckError(f"ufw manages no rules of IPv6; write IPV6=yes in {ufw_program.DEFAULTS}")
        return ["IPv6"]
    return ["IPv4"] if addresses or attrs.get("protocol") in ONLY_IPV4 else present


def _wanted(attrs: records.Attrs) -> records.Fields:
    return {"action": attrs["action"], "log": LOGS[attrs.get("log")], "comment": attrs.get("comment") or ""}


def _keys(attrs: records.Attrs, families: Sequence[str]) -> dict[str, str]:
    words = clause(attrs)
    return {family: ufw_program.key(bool(attrs.get("route")), words, family) for family in families}


def _add(
    attrs: records.Attrs, families: list[str], rule: records.Fields, first: bool = False, at: int | None = None
) -> Action:
    fields = (rule["action"], rule["log"], rule["comment"])
    return ufw_program.add_rule(clause(attrs), families, *fields, bool(attrs.get("route")), first, at)


def _delete(attrs: records.Attrs, families: list[str], rule: records.Fields) -> Action:
    return ufw_program.delete_rule(clause(attrs), families, rule["action"], rule["log"], bool(attrs.get("route")))


def check(node: HostNode, world: World) -> list[Action]:
    """Compare the rule with the wanted one.

    :raises CheckError: if ufw is not installed, or has no such profile
    """
    attrs = node.attrs
    keys = _keys(attrs, _families(attrs, world))
    now = {family: world.entry("ufw_rule", name) for family, name in keys.items()}
    if attrs.get("absent"):
        return [_delete(attrs, [family], rule) for family, rule in now.items() if rule is not None]
    missing = [family for family, rule in now.items() if rule != _wanted(attrs)]
    return [_add(attrs, missing, _wanted(attrs), bool(attrs.get("first")))] if missing else []


def remember(node: HostNode, world: World) -> records.Fields:
    """Record the rules about the same packets, with their positions among those of their family."""
    rules: dict[str, records.Fields | None] = {}
    for family, name in _keys(node.attrs, _families(node.attrs, world)).items():
        fields = world.entry("ufw_rule", name)
        keys = [each for each in world.facet("ufw_rule") if each.endswith(", " + family)]
        rules[family] = {**fields, "at": keys.index(name) + 1} if fields is not None else None
    return {"rules": rules}


def undo(node: HostNode, memory: records.Fields, world: World) -> ActionSpec:
    """Delete the rule, or restore the former one. A rule that others have changed stays."""
    attrs, spec = node.attrs, ActionSpec()
    if world.stat(ufw_program.FILES["IPv4"]) is None:
        return spec
    for family, was in memory["rules"].items():
        name = _keys(attrs, [family])[family]
        now = world.entry("ufw_rule", name)
        if attrs.get("absent"):
            if was is not None and now is None:
                spec.actions.append(_add(attrs, [family], was, at=was["at"]))
        elif now is None or (was is not None and all(now[field] == was[field] for field in now)):
            continue
        elif now != _wanted(attrs):
            spec.left.append(f"the rule {name} was changed to {now['action']} by others: it stays")
        else:
            spec.actions.append(_delete(attrs, [family], now) if was is None else _add(attrs, [family], was))
    return spec
