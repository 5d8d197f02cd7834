"""Tables of the packet filter nftables."""

from __future__ import annotations

from typing import Any, Literal, Unpack

from statecfg import Attrs, LocalPath, Name, NodeOptions, NoNul, PublicLine, node_type
from statecfg.resources.network import firewall_rules, nft
from statecfg.resources.shared import files


@node_type
def nftables(
    name: Name,
    *,
    table: PublicLine | None = None,
    family: Literal["inet", "ip", "ip6", "arp", "bridge", "netdev"] = "inet",
    content: NoNul | None = None,
    source: LocalPath | None = None,
    template: LocalPath | None = None,
    vars: dict[str, Any] | None = None,
    running: bool = True,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a table of nftables: a file in /etc/nftables.d for the next boot, and the running rules.

    ``nft`` checks the rules before anything changes, also in plans. statecfg compares the running table with the one
    that the file makes, so a rule that was added by hand is a difference; counters, and elements that the rules
    themselves add to a set, are not. The kernel replaces the table in one step. The main configuration must include the
    directory, and the `service` ``nftables`` loads it at boot. If ``nft`` refuses the main configuration because of the
    new file, statecfg restores the former file. Name interfaces with ``iifname`` and ``oifname``.

    After a change, statecfg tries a new login, and restores the former table if it fails.

    Undo: statecfg restores the former file and the former table, or removes them. A running table that others have
    changed since then stays.

    :param name: the name of the file without ``.nft``: letters, digits, `_` and `-`. nft reads them in their order
    :param table: the name of the table; default: `name`
    :param family: the family of the table
    :param content: what is in the table, without ``table … { }`` around it
    :param source: a local file that provides the content, next to the playbook or in the project's ``files/``
    :param template: a local Jinja2 template that renders the content, next to the playbook or in ``templates/``
    :param vars: additional variables for the template; they override the variables of the host
    :param running: false: change only the file
    :param allow_override: accept that a later line removes the table at boot
    :param absent: the file and the table must not exist

    In YAML::

        - nftables: web
          content: |
            chain input {
                type filter hook input priority filter; policy drop;
                ct state established,related accept
                iifname lo accept
                tcp dport { 22, 80, 443 } accept
            }

    In Python::

        nftables("20-blocked", table="blocked", content="set addresses { type ipv4_addr; flags interval; }")
    """


@nftables.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the file and the table."""
    table = attrs.get("table") or attrs["name"]
    return [f"path:{nft.DIRECTORY}/{attrs['name']}.nft", f"nftables:{attrs['family']} {table}"]


nftables.owns(["part:path:" + path for path in nft.MAIN])


nftables.needs(["package:nftables"])
nftables.validate(firewall_rules.check_nftables)
nftables.to_wire(firewall_rules.sent_nftables)
nftables.blobs(files.blobs)
nftables.reads_as_code("content")
nftables.effect(nft.effect)
nftables.implemented_by(nft)
