"""Rules for attributes of firewalls. Only the controller uses this module."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.wrong_values import PublicSecret, Wrong, show
from statecfg.resources.network import nft, ufw_rules
from statecfg.resources.shared import drop_in_texts, file_sources, paths, records

CONTENT = ("content", "source", "template")  # of an `nftables`

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
            raise ValueError(f"the protocol {protocol} has no ports")
        if protocol is None and re.search("[:,]", str(attrs[name])):
            raise Wrong(f"{name}: several ports require a protocol", "write protocol: tcp, or udp")
    if protocol in ufw_rules.ONLY_IPV4 and any(":" in text for text in addresses.values()):
        raise ValueError(f"the protocol {protocol} is a part of IPv4")
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
            raise ValueError(f"app can't be combined with {name}: the profile has its own")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.+-]*", app) or app.isdigit() or app == "all" or "  " in app:
        raise Wrong(f"app: {show(app)} is not the name of a profile", "`ufw app list` lists the profiles of a host")


def check_nftables(attrs: records.Attrs) -> None:
    """Check the attributes of an `nftables` together.

    :raises ValueError: if they contradict each other, or one is not valid
    """
    paths.refuse_with_absent({**attrs, "running": None}, ("name", "table", "family", "absent"))
    drop_in_texts.check_name(attrs["name"])
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", table_of(attrs)):
        help = "write table: NAME, with letters, digits and `_`; it begins with a letter"
        raise Wrong(f"{show(table_of(attrs))} can't be the name of a table", help)
    drop_in_texts.check_content(attrs, CONTENT)
    content = attrs.get("content")
    if hasattr(content, "reveal"):
        raise PublicSecret("rules can't contain secrets: nft prints them", "content")
    if content is not None:
        check_body(str(content))


def check_body(text: str) -> None:
    """Check that a string is the inside of one table: it must not close the table's brace.

    :raises Wrong: if it closes the brace, or opens others that it does not close
    """
    depth = 0
    for letter in re.sub(r'"[^"\n]*"|#[^\n]*', "", text):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth < 0:
            break
    if depth:
        help = "write the sets and chains of the table, without `table … { }` around them"
        raise Wrong("content: the braces don't match", help)
    if re.search(r"^\s*(table\s|flush\s|delete\s|destroy\s|include\s)", text, re.M):
        help = "write the sets and chains of the table; each table has its own node"
        raise Wrong("content: a table can't contain a command such as table, flush or include", help)


def table_of(attrs: records.Attrs) -> str:
    """Return the name of the table of an `nftables`."""
    return str(attrs.get("table") or attrs["name"])


def sent_nftables(node: Any, context: Any) -> Any:
    """Return the node as the host needs it: with the path and the text of the file."""
    attrs = node.attrs
    node = node.with_attrs(table=table_of(attrs))
    sent = file_sources.with_content(node, context)
    text = None
    if not attrs.get("absent"):
        body = Blob.of(sent.attrs["content"]).read()
        check_body(body.decode("utf-8", "replace"))
        name = f"{attrs['family']} {table_of(attrs)}"
        begin = f"{drop_in_texts.HEADER}table {name}\ndelete table {name}\ntable {name} {{\n"
        text = Blob.of(begin.encode() + body.rstrip() + b"\n}\n")
    path = f"{nft.DIRECTORY}/{attrs['name']}.nft"
    return drop_in_texts.sent(sent, path, text, 0o600, validate=["nft", "--check", "--file", "{}"])
