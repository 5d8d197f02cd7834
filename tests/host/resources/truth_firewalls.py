"""Cases for the node types of firewalls (see `truth`). Each booted host has a network of its own."""

from __future__ import annotations

from statecfg.graph.graph import Graph
from statecfg.resources import ufw, ufw_rule
from tests.host.resources.truth_case import Case
from tests.lab import Host


def _ufw_rule(root: str, requires: list[Graph]) -> list[Graph]:
    ssh = ufw_rule("ssh", port=22, protocol="tcp", comment="ssh", requires=requires)
    return [
        ssh,
        ufw_rule("b-web", port="80,443", protocol="tcp", from_address="192.0.2.0/24", action="limit", requires=[ssh]),
        ufw_rule("a-profile", app="OpenSSH", interface="eth0", log="new", first=True, requires=[ssh]),
        ufw_rule(
            "route", route=True, interface="eth0", out_interface="eth1", from_address="2001:db8::/32", requires=[ssh]
        ),
        ufw_rule("telnet", port=23, absent=True, requires=requires),
    ]


def _ufw_rule_drift(host: Host, root: str) -> None:
    host.run(["ufw", "deny", "in", "proto", "tcp", "from", "192.0.2.0/24", "to", "any", "port", "80,443"])
    host.run(["ufw", "delete", "allow", "in", "proto", "tcp", "from", "::/0", "to", "::/0", "port", "22"])
    host.run(["ufw", "reject", "23"])


def _ufw(root: str, requires: list[Graph]) -> list[Graph]:
    ssh = ufw_rule("ssh", port=22, protocol="tcp", requires=requires)
    return [ssh, ufw("enabled", incoming="reject", outgoing="allow", logging="medium", requires=[ssh])]


def _ufw_drift(host: Host, root: str) -> None:
    host.run(["ufw", "default", "deny", "incoming"])
    host.run(["ufw", "disable"])


FIREWALLS = [
    Case("ufw_rule", _ufw_rule, _ufw_rule_drift),
    Case("ufw", _ufw, _ufw_drift),
]
