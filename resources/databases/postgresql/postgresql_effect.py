"""Whether a role of PostgreSQL still has privileges that a node removes: from all roles, or from one of its roles."""

from __future__ import annotations

import json
from collections.abc import Sequence

from statecfg.remote.graph.model import CheckError, HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.databases.postgresql import postgresql
from statecfg.resources.databases.postgresql.postgresql import key, literal


def refuse_elsewhere(node: HostNode, world: World, user: str, wanted: Sequence[str], sql: str) -> None:
    """Check that the role has none of the node's privileges from elsewhere.

    :param user: the user who runs the server
    :param wanted: the privileges
    :param sql: see `query`
    :raises Unknown: if an earlier node changes privileges
    :raises CheckError: if it has one and the node does not accept that, or the database can't be read
    """
    attrs, port = node.attrs, node.attrs["port"]
    if attrs.get("allow_override") or attrs.get("default_for") is not None or attrs["role"].lower() == "public":
        return
    there = [key("database", attrs["database"], port), key("role", attrs["role"], port)]
    if any(world.entry("postgresql", each) is None for each in there):
        return
    what = "the privileges of the role " + attrs["role"]
    found = json.loads(postgresql.told(world, port, user, attrs["database"], sql, what) or "[]")
    still = [(each, word, source) for each, word, source in found if word in wanted]
    if not still:
        return
    each, word, source = still[0]
    through = "because it is a superuser"
    if source != attrs["role"]:
        through = "from all roles (public)" if source == "public" else f"from the role {source}, to which it belongs"
    why = f"{attrs['role']} still has {word} on {each} {through}: remove it there, and require that node"
    raise CheckError(f"{why}; allow_override: true accepts that")


def query(role: str, objects: tuple[str, str, str], conditions: Sequence[str]) -> str:
    """Return the query for the privileges that a role has from other roles: object, privilege, role.

    :param objects: catalog, column with the names, and list of privileges
    :param conditions: which objects
    """
    catalog, column, access = objects
    from_others = "a.grantee = 0 OR (a.grantee <> m.oid AND pg_has_role(m.oid, a.grantee, 'USAGE'))"
    source = "CASE WHEN m.rolsuper THEN m.rolname WHEN a.grantee = 0 THEN 'public' ELSE a.grantee::regrole::text END"
    return (
        f"SELECT coalesce(json_agg(DISTINCT jsonb_build_array({column}, a.privilege_type, {source})), '[]') "  # noqa: S608  # all values are quoted
        f"FROM {catalog} JOIN pg_roles m ON m.rolname = {literal(role)} CROSS JOIN LATERAL aclexplode({access}) a "
        f"WHERE ({from_others}) AND {' AND '.join(conditions)}"
    )
