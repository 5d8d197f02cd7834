"""Limits of the sessions of users and groups."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, Line, Name, NodeOptions, PublicLine, node_type
from statecfg.resources.accounts import limit_files
from statecfg.resources.shared import drop_in_texts, drop_ins, files, item_rules, paths

DIRECTORY = "/etc/security/limits.d/"


@node_type
def limits(
    name: Name,
    *,
    domain: PublicLine | None = None,
    soft: dict[str, int | Line] | None = None,
    hard: dict[str, int | Line] | None = None,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Limit the resources of sessions that PAM opens, such as logins, cron and su. Services of systemd have their own.

    The limits are in a separate file in /etc/security/limits.d. They apply to new sessions. pam_limits reads the
    files in alphabetical order, and of two entries for one domain the last one counts. If a later file wins, the node
    fails and names its line, already in the plan.

    Undo: statecfg restores the file that had this name before, or removes the limits.

    :param name: the name of the file, without ``.conf``
    :param domain: who is limited: a user, a group as ``@group``, or ``*`` for all users
    :param soft: the limits that apply at first: item → number, or ``unlimited``; limits.conf(5) lists the items
    :param hard: the limits up to which a user may raise the soft ones
    :param allow_override: accept that a later file wins
    :param absent: there must be no file of this name

    In YAML::

        - limits: database
          domain: postgres
          soft: {nofile: 65536}
          hard: {nofile: 65536, memlock: unlimited}

    In Python::

        limits("no-core", domain="*", hard={"core": 0})
    """


@limits.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a missing domain, and unknown or invalid limits."""
    paths.refuse_with_absent(attrs, ("name", "absent"))
    drop_in_texts.check_name(attrs["name"])
    drop_in_texts.check_present(attrs, ("domain",))
    if not attrs.get("absent"):
        item_rules.check_domain(attrs["domain"])
        drop_in_texts.check_limits(attrs)


@limits.to_wire
def to_wire(node: Any) -> Any:
    """Send the content of the file."""
    content = None if node.attrs.get("absent") else drop_in_texts.limits(node.attrs)
    path = f"{DIRECTORY}{node.attrs['name']}.conf"
    return drop_in_texts.sent(node, path, content, domain=None, soft=None, hard=None)


limits.identity(["path:" + DIRECTORY + "{name}.conf"])
limits.check(drop_ins.check)
limits.effect(limit_files.effect)
limits.implemented_by(files)
