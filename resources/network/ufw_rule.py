"""Rules of the firewall ufw."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import Attrs, Name, NodeOptions, PublicLine, node_type
from statecfg.resources.network import firewall_rules, ufw_rules, ufw_settings


@node_type
def ufw_rule(
    name: Name,
    *,
    action: Literal["allow", "deny", "reject", "limit"] = "allow",
    direction: Literal["in", "out"] = "in",
    protocol: Literal["tcp", "udp", "ah", "esp", "gre", "ipv6", "igmp", "vrrp"] | None = None,
    port: int | PublicLine | None = None,
    app: PublicLine | None = None,
    to_address: PublicLine | None = None,
    from_address: PublicLine | None = None,
    from_port: int | PublicLine | None = None,
    interface: PublicLine | None = None,
    route: bool = False,
    out_interface: PublicLine | None = None,
    log: Literal["new", "all"] | None = None,
    comment: PublicLine | None = None,
    first: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a rule of the firewall ufw. Several rules of one layer are added in the order of their names.

    The first rule about a packet decides, so write `requires` if the order matters. There can be only one rule about
    the same packets: if it has another action, log or comment, statecfg changes it, and it keeps its position. Without
    addresses, a rule is for IPv4 and IPv6. The rules apply when the firewall is on (see [ufw](#ufw)).

    After a change in an active firewall, statecfg tries a new login, and restores the former rules if it fails.

    Undo: statecfg deletes the rule, or restores the former one. A rule that others have changed since then stays.

    :param name: what the rule is for; reports and requirements use this name
    :param action: ``limit`` denies an address with 6 or more connections in 30 seconds
    :param direction: whether the packets come in or go out
    :param protocol: the protocol; default: any
    :param port: the port of the destination, or several: ``80,443`` or ``6000:6007``
    :param app: a profile that defines ports, such as ``OpenSSH``; ``ufw app list`` lists those of the host
    :param to_address: the address or network of the destination
    :param from_address: the address or network of the source
    :param from_port: the port of the source
    :param interface: the network interface
    :param route: the rule is for packets that the host forwards; `interface` is the one on which they come in
    :param out_interface: the network interface on which forwarded packets go out
    :param log: log the first packet of connections, or all packets
    :param comment: a comment, which ``ufw status`` shows
    :param first: a new rule comes before all others. An existing rule keeps its position
    :param absent: there must be no rule about these packets, with any action

    In YAML::

        - ufw_rule: ssh-from-office
          port: 22
          protocol: tcp
          from_address: 192.0.2.0/24

    In Python::

        ufw_rule("to-web-servers", route=True, out_interface="eth1", port="80,443", protocol="tcp")
    """


@ufw_rule.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the rule about these packets."""
    return [f"ufw_rule:{'route ' if attrs.get('route') else ''}{' '.join(ufw_rules.clause(attrs))}"]


ufw_rule.owns(["part:path:/etc/ufw/user.rules", "part:path:/etc/ufw/user6.rules"])


@ufw_rule.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid addresses and ports, and attributes that contradict each other."""
    firewall_rules.check_ufw_rule(attrs)
    unused = [name for name in ("log", "comment", "first") if attrs.get("absent") and attrs.get(name)]
    if unused:
        raise ValueError(f"absent can't be combined with {', '.join(unused)}")


ufw_rule.needs(["package:ufw"])
ufw_rule.guard(ufw_settings.guard)
ufw_rule.implemented_by(ufw_rules)
