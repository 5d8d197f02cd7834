"""Cases for the node types of firewalls (see `truth`). Each booted host has a network of its own."""

from __future__ import annotations

from statecfg.graph.graph import Graph
from statecfg.resources import line_in_file, nftables, ufw, ufw_rule
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
    ssh = ufw_rule("ssh", port=22, protocol="tcp", comment="ssh", requires=requires)  # as in the other playbook
    return [ssh, ufw("enabled", incoming="reject", outgoing="allow", logging="medium", requires=[ssh])]


def _ufw_drift(host: Host, root: str) -> None:
    host.run(["ufw", "default", "deny", "incoming"])
    host.run(["ufw", "disable"])


INPUT = """
set seen { type ipv4_addr; flags dynamic,timeout; timeout 1m; }
chain input {
    type filter hook input priority 0; policy drop;
    ct state established,related accept
    iif lo accept
    tcp dport { 443, 22, 80 } counter add @seen { ip saddr } accept comment "web { and ssh"
}
"""


def _nftables(root: str, requires: list[Graph]) -> list[Graph]:
    line = 'include "/etc/nftables.d/*.nft"'
    include = line_in_file("/etc/nftables.conf", line=line, provides="include", requires=requires)
    return [
        nftables("web", content=INPUT, requires=[include]),
        nftables("20-nat", table="nat", family="ip", content="chain a {\n}\n", requires=[include]),
        nftables("gone", absent=True, requires=[include]),
    ]


def _nftables_drift(host: Host, root: str) -> None:
    host.run(["nft", "add", "rule", "inet", "web", "input", "accept"])
    host.run(["nft", "delete", "table", "ip", "nat"])
    host.run(["nft", "add", "table", "inet", "gone"])


FIREWALLS = [
    Case("ufw_rule", _ufw_rule, _ufw_rule_drift),
    Case("ufw", _ufw, _ufw_drift),
    Case("nftables", _nftables, _nftables_drift),
]
