"""The firewall ufw: facets with its rules and settings, and the ops that change them. They use the program ufw.

Source: ufw(8), and the files of ufw 0.36. Each rule is in a file as a line of fields, which ufw calls a tuple.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from statecfg.remote.graph.model import CheckError, Unknown
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import records

DEFAULTS, CONFIG = "/etc/default/ufw", "/etc/ufw/ufw.conf"
FILES = {"IPv4": "/etc/ufw/user.rules", "IPv6": "/etc/ufw/user6.rules"}
ANYWHERE = {"IPv4": "0.0.0.0/0", "IPv6": "::/0"}
POLICIES = {"DROP": "deny", "ACCEPT": "allow", "REJECT": "reject"}
# Attribute of the node type `ufw` → the variable in /etc/default/ufw, and the name for the program.
DIRECTIONS = {
    "incoming": ("DEFAULT_INPUT_POLICY", "incoming"),
    "outgoing": ("DEFAULT_OUTPUT_POLICY", "outgoing"),
    "routed": ("DEFAULT_FORWARD_POLICY", "routed"),
}
ORDER = "order"  # each change of a rule also touches this entry, so that a layer adds its rules in the planned order
TIMEOUT = 120.0


def clause(direction: Sequence[str], protocol: str, source: Sequence[str], destination: Sequence[str]) -> list[str]:
    """Return which packets a rule is about, in the words of ufw.

    :param direction: such as `["in", "on", "eth0"]`
    :param protocol: `any`, or the name of a protocol
    :param source: address or `any`, port or `any`, name of a profile or ""
    :param destination: the same
    """
    words = list(direction)
    if protocol != "any":
        words += ["proto", protocol]
    for word, (address, port, profile) in (("from", source), ("to", destination)):
        words += [word, address]
        words += ["app", profile] if profile else ["port", port] if port != "any" else []
    return words


def key(route: bool, words: Sequence[str], family: str) -> str:
    """Return the key of a rule in the facet.

    :param words: see `clause`
    :param family: IPv4 or IPv6
    """
    return f"{'route ' if route else ''}{' '.join(words)}, {family}"


@facet("ufw_rule", volatile=True)
def rules(host: World) -> dict[str, records.Fields]:
    """Load the rules, in the order of ufw's files: key → `action`, `log` and `comment`.

    :raises CheckError: if a file contains something that is not a rule
    """
    loaded: dict[str, records.Fields] = {ORDER: {"ipv6": _has_ipv6(_lines(host, DEFAULTS))}}
    for family, path in FILES.items():
        for line in _lines(host, path):
            if line.startswith("### tuple ### "):
                name, fields = _rule(line, family, path)
                loaded.setdefault(name, fields)
    return loaded


def _rule(line: str, family: str, path: str) -> tuple[str, records.Fields]:
    text, _, comment = line[len("### tuple ### ") :].partition(" comment=")
    parts = text.split()
    if len(parts) not in (7, 9):
        raise CheckError(f"{path} contains a rule that statecfg can't read: {line}")
    what, protocol, dport, to, sport, source = parts[:6]
    to_profile, from_profile = (
        "" if name == "-" else name.replace("%20", " ") for name in (parts[6:8] if len(parts) == 9 else "--")
    )
    route, _, action = what.rpartition(":")
    action, _, log = action.partition("_")
    direction = _direction(parts[-1], bool(route))
    protocol = "any" if to_profile or from_profile else protocol  # otherwise that of the profile
    source, to = ("any" if address == ANYWHERE[family] else address for address in (source, to))
    words = clause(direction, protocol, (source, sport, from_profile), (to, dport, to_profile))
    try:
        remark = bytes.fromhex(comment.strip()).decode("utf-8", "replace")
    except ValueError:
        raise CheckError(f"{path} contains a comment that statecfg can't read: {line}") from None
    return key(bool(route), words, family), {"action": action, "log": log, "comment": remark}


def _direction(text: str, route: bool) -> list[str]:
    """Return the words for a direction such as `in`, `out_eth0` or, of a route, `in_eth0!out_eth1`."""
    words: list[str] = []
    for part in text.split("!"):
        direction, _, interface = part.partition("_")
        if interface:
            words += [direction, "on", interface]
        elif not route:
            words.append(direction)
    return words


def _lines(host: World, path: str) -> list[str]:
    """Return the lines of a file of ufw; none if ufw is not installed."""
    return host.read(path).decode("utf-8", "replace").splitlines() if host.stat(path) is not None else []


def _variables(lines: Sequence[str]) -> dict[str, str]:
    """Return the variables that lines set as a shell does: `NAME=value` or `NAME="value"`."""
    found = (re.match(r"\s*([A-Z0-9_]+)=[\"']?([^\"'\s]*)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


@facet("ufw", volatile=True)
def settings(host: World) -> dict[str, records.Fields]:
    """Load the settings: `state`, `logging` and the defaults → `value`; nothing if ufw is not installed.

    :raises CheckError: if ufw does not say whether it is active
    """
    config, defaults = _variables(_lines(host, CONFIG)), _variables(_lines(host, DEFAULTS))
    if not config:
        return {}
    probe = host.probe(["ufw", "status"])
    found = re.search("^Status: (active|inactive)$", probe.text, re.M)
    if probe.status or found is None:
        message = (probe.errors or probe.output).decode("utf-8", "replace").strip()
        raise CheckError("ufw does not say whether the firewall is active: %s" % (message or "no output"))
    at_boot = config.get("ENABLED", "no").lower() == "yes"
    states = {(True, True): "enabled", (False, False): "disabled"}
    active = found[1] == "active"
    loaded = {
        "state": states.get(
            (at_boot, active), "active until the next boot" if active else "inactive until the next boot"
        ),
        "logging": config.get("LOGLEVEL", "low").lower(),
        **{name: POLICIES.get(defaults.get(variable, ""), "") for name, (variable, _) in DIRECTIONS.items()},
    }
    return {name: {"value": value} for name, value in loaded.items()}


def families(world: World) -> list[str]:
    """Return the families of addresses for which ufw has rules.

    :raises Unknown: if a required node may still install ufw
    :raises CheckError: if ufw is not installed
    """
    if world.stat(FILES["IPv4"]) is None:
        raise CheckError("ufw is not installed; declare package: ufw")
    try:
        ipv6 = _has_ipv6(_lines(world, DEFAULTS))
    except Unknown:  # a required node of type `ufw` changes a default there, and nothing else
        ipv6 = bool((world.entry("ufw_rule", ORDER) or {}).get("ipv6"))
    return ["IPv4", "IPv6"] if ipv6 else ["IPv4"]


def _has_ipv6(lines: Sequence[str]) -> bool:
    return _variables(lines).get("IPV6", "no").lower() == "yes"


def _precise(words: Sequence[str], chosen: Sequence[str]) -> Iterator[str]:
    """Yield the words of a rule. If it is for one family only, replace `any` by all addresses of this family."""
    before = ""
    for word in words:
        anywhere = word == "any" and before in ("from", "to") and len(chosen) == 1
        yield ANYWHERE[chosen[0]] if anywhere else word
        before = word


def _argv(first: Sequence[str], route: bool, words: Sequence[str], log: str, chosen: Sequence[str]) -> list[str]:
    rest = list(_precise(words, chosen))
    at = next(index for index, word in enumerate(rest) if word in ("proto", "from"))
    rest[at:at] = [log] if log else []
    return ["ufw", *(["route"] if route else []), *first, *rest]


@op(mutex="ufw")
def add_rule(
    machine: Machine,
    words: list[str],
    families: list[str],
    action: str,
    log: str = "",
    comment: str = "",
    route: bool = False,
    first: bool = False,
    at: int | None = None,
) -> Result:
    """Add a rule, or give a rule about the same packets another action. In an active firewall, it applies at once.

    :param first: whether a new rule comes before all others
    :param at: the position of a new rule among those of its family, from 1
    """
    where = ["prepend"] if first else []
    if at is not None:
        position, end = _position(machine, families[0], at)
        where = ["insert", str(position)] if position <= end else []
    argv = _argv([*where, action], route, words, log, families)
    argv += ["comment", comment] if comment else []
    fields = {"action": action, "log": log, "comment": comment}
    return machine.run(argv, _effect(route, words, families, fields), timeout=TIMEOUT)


@op(mutex="ufw")
def delete_rule(
    machine: Machine, words: list[str], families: list[str], action: str, log: str = "", route: bool = False
) -> Result:
    """Delete a rule."""
    argv = _argv(["delete", action], route, words, log, families)
    return machine.run(argv, _effect(route, words, families, None), timeout=TIMEOUT)


def _effect(
    route: bool, words: Sequence[str], families: Sequence[str], fields: records.Fields | None
) -> records.Effect:
    changed = {key(route, words, family): fields for family in families}
    return {"ufw_rule": {**changed, ORDER: {}}}


def _position(machine: Machine, family: str, at: int) -> tuple[int, int]:
    """Return ufw's number for a position, and the number of the family's last rule: ufw counts IPv4 first."""
    count = {name: sum(rule.endswith(", " + name) for rule in machine.facet("ufw_rule")) for name in FILES}
    before = count["IPv4"] if family == "IPv6" else 0
    return before + at, before + count[family]


@op(mutex="ufw")
def change_setting(machine: Machine, name: str, value: str) -> Result:
    """Change a setting: `state`, `logging`, or the default of a direction."""
    if name == "state":
        argv = ["ufw", "--force", "enable" if value == "enabled" else "disable"]
    elif name == "logging":
        argv = ["ufw", "logging", value]
    else:
        argv = ["ufw", "default", value, DIRECTIONS[name][1]]
    path = CONFIG if name in ("state", "logging") else DEFAULTS
    return machine.run(argv, {"ufw": {name: {"value": value}}, "files": [path]}, timeout=TIMEOUT)
