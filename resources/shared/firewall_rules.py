"""Rules for attributes of firewalls. Only the controller uses this module."""

from __future__ import annotations

import ipaddress
import re

from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.shared import records, ufw_rules

PORTLESS = ("ah", "esp", "gre", "ipv6", "igmp", "vrrp")
MOST = 15  # ports in a rule; both ends of a range count. Source: iptables-extensions(8), multiport


def check_address(text: str, attribute: str) -> None:
    """Check an address or network. There is one notation of each, so that statecfg finds the rule again.

    :raises Wrong: if it is not valid, or not in this notation
    """
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        help = "write one such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32"
        raise Wrong(f"{attribute}: {show(text)} is not an address or a network", help) from None
    plain = str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)
    if plain != text:
        raise Wrong(f"{attribute}: ufw stores {show(text)} in another way", f"write {plain}")


def check_ports(text: str, attribute: str) -> None:
    """Check a list of ports and ranges, such as ``80,443`` or ``6000:6007``.

    :raises Wrong: if it is not valid
    """
    help = "write numbers from 1 to 65535, such as 22, 80,443 or 6000:6007"
    parts = text.split(",")
    for part in parts:
        found = re.fullmatch(r"([1-9][0-9]{0,4})(?::([1-9][0-9]{0,4}))?", part)
        if found is None or int(found[1]) > 65535 or not int(found[1]) < int(found[2] or 65536) <= 65536:
            raise Wrong(f"{attribute}: {show(text)} is not a list of ports", help)
    if sum(1 + (":" in part) for part in parts) > MOST:
        raise Wrong(f"{attribute}: a rule can have at most {MOST} ports", "write several rules")


def check_interface(text: str, attribute: str) -> None:
    """Check the name of a network interface.

    :raises Wrong: if ufw does not accept it
    """
    if not re.fullmatch(r"[A-Za-z0-9_.+,=%@][A-Za-z0-9_.+,=%@-]{0,14}", text) or text in (".", ".."):
        raise Wrong(f"{attribute}: {show(text)} is not the name of an interface", "write a name such as eth0")


def check_ufw_rule(attrs: records.Attrs) -> None:
    """Check the attributes of a `ufw_rule` together.

    :raises ValueError: if they contradict each other, or one is not valid
    """
    addresses = {name: attrs[name] for name in ("from_address", "to_address") if attrs.get(name) is not None}
    for name, text in addresses.items():
        check_address(text, name)
    if len({":" in text for text in addresses.values()}) > 1:
        raise ValueError("from_address and to_address are of different families")
    protocol = attrs.get("protocol")
    for name in ("port", "from_port"):
        if attrs.get(name) is None:
            continue
        check_ports(str(attrs[name]), name)
        if protocol in PORTLESS:
            raise ValueError("the protocol %s has no ports" % protocol)
        if protocol is None and re.search("[:,]", str(attrs[name])):
            raise Wrong(f"{name}: several ports require a protocol", "write protocol: tcp, or udp")
    if protocol in ufw_rules.ONLY_IPV4 and any(":" in text for text in addresses.values()):
        raise ValueError("the protocol %s is a part of IPv4" % protocol)
    _check_app(attrs)
    for name in ("interface", "out_interface"):
        if attrs.get(name) is not None:
            check_interface(attrs[name], name)
    if attrs.get("out_interface") is not None and not attrs.get("route"):
        raise ValueError("out_interface is for rules with route: true; otherwise write direction: out and interface")
    if attrs.get("route") and attrs.get("direction", "in") != "in":
        raise Wrong("direction can't be combined with route", "write interface, and out_interface")
    comment = attrs.get("comment")
    if comment is not None and (not comment or "'" in comment or comment.startswith("-")):
        raise Wrong(f"comment: ufw can't store {show(comment)}", "write a string without ', and without - at its start")


def _check_app(attrs: records.Attrs) -> None:
    app = attrs.get("app")
    if app is None:
        return
    for name in ("port", "protocol"):
        if attrs.get(name) is not None:
            raise ValueError("app can't be combined with %s: the profile has its own" % name)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.+-]*", app) or app.isdigit() or app == "all" or "  " in app:
        raise Wrong(f"app: {show(app)} is not the name of a profile", "`ufw app list` lists the profiles of a host")
