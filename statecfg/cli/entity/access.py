"""`statecfg entity access` and `token`: access rights, and the tokens that authenticate users."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from statecfg.cli.entity.calls import VERSION, LocalEntityCalls
from statecfg.cli.verbs import COLOR, JSON, StoreGroup, VerbResult
from statecfg.entities import shapes, urn
from statecfg.entities.model import MEMBERSHIP, PROVIDER, org_id, user_id
from statecfg.problems import InvalidInput, durations, problem
from statecfg.views import entities as view
from statecfg.views.host_records import when

LEVELS = ("ReadOnly", "ReadWrite", "FullControl")
ACCESS = """
statecfg entity access list type site                            show who may do what with a type
statecfg entity access grant type site alice ReadWrite           give access to a type; users see no other types
statecfg entity access grant entity blog alice ReadOnly          give access to one entity
statecfg entity access revoke entity blog alice                  take the access away
statecfg entity access allow site restart ReadWrite              let users with at least ReadWrite invoke a behavior
"""
TOKENS = """
statecfg serve token create alice --role author --org shop     create a token; it is shown only once
statecfg serve token list                                      list the tokens
statecfg serve token delete 3                                  delete a token
"""


@click.group("access", cls=StoreGroup, opens=LocalEntityCalls, examples=ACCESS)
def access() -> None:
    """Manage who may see, change and invoke what: grants of types and entities, to users or organizations."""


_what = click.argument("what", metavar="type|entity", type=click.Choice(["type", "entity"]))
_org = click.option("--org", metavar="ORG", default="System", help="The user's organization. Default: System.")
_all = click.option("--whole-org", is_flag=True, help="WHO is an organization, not a user.")


def _object(entities: LocalEntityCalls, what: str, name: str) -> str:
    return entities.type(name).id if what == "type" else entities.entity(name).id


def _member(who: str, org: str, whole: bool) -> str:
    return who if who.startswith("urn:") else org_id(who) if whole else user_id(who, org)


@access.verb("list", "statecfg entity access list type site", JSON, COLOR)
@_what
@click.argument("name")
def grants(entities: LocalEntityCalls, what: str, name: str) -> VerbResult:
    """Show who may do what with a type or an entity; for a type, also who may invoke its behaviors."""
    id = _object(entities, what, name)
    access_grants = entities.all(lambda me, query: entities.calls.list_grants(me, id, query))
    behavior_grants = (
        entities.all(lambda me, query: entities.calls.list_behavior_grants(me, id, query)) if what == "type" else []
    )
    rows = [(grant.member, grant.level.rpartition(":")[2], grant.id) for grant in access_grants]
    lines = list(view.table(("WHO", "LEVEL", "ID"), rows, "grant grants"))
    if behavior_grants:
        pairs = [(grant.behavior, grant.level.rpartition(":")[2]) for grant in behavior_grants]
        lines += view.table(("BEHAVIOR", "FROM LEVEL"), pairs, "behavior behaviors")
    data: dict[str, Any] = {"values": [shapes.grant(grant, VERSION) for grant in access_grants]}
    data["behaviors"] = [shapes.behavior_grant(grant, VERSION) for grant in behavior_grants]
    return VerbResult(lines, data)


@access.verb("grant", "statecfg entity access grant type site alice ReadWrite --org shop")
@_what
@click.argument("name")
@click.argument("who")
@click.argument("level", type=click.Choice(LEVELS))
@_org
@_all
def grant(entities: LocalEntityCalls, what: str, name: str, who: str, level: str, org: str, whole_org: bool) -> str:
    """Give a user or an organization access to a type or an entity. This replaces their previous access."""
    body = {
        "grantType": MEMBERSHIP,
        "accessLevelId": f"urn:vcloud:accessLevel:{level}",
        "memberId": _member(who, org, whole_org),
    }
    created = entities.calls.add_grant(entities.me, _object(entities, what, name), body)
    return f"{who}: {level} of {created.object}"


@access.verb("revoke", "statecfg entity access revoke type site alice --org shop")
@_what
@click.argument("name")
@click.argument("who")
@_org
@_all
def revoke(entities: LocalEntityCalls, what: str, name: str, who: str, org: str, whole_org: bool) -> str:
    """Revoke the access of a user or an organization to a type or an entity."""
    member = _member(who, org, whole_org)
    id = _object(entities, what, name)
    grants = entities.all(lambda me, query: entities.calls.list_grants(me, id, query))
    mine = [grant for grant in grants if grant.member == member]
    if not mine:
        hint = f"`statecfg entity access list {what} {name}` shows who has access"
        raise InvalidInput([problem("SC0802", f"{who} was not granted access to {id}", hint)])
    for grant in mine:
        entities.calls.delete_grant(entities.me, id, grant.id)
    return f"{who}: access to {id} revoked"


@access.verb("allow", "statecfg entity access allow site restart ReadWrite")
@click.argument("type")
@click.argument("behavior")
@click.argument("level", type=click.Choice(LEVELS))
def allow(entities: LocalEntityCalls, type: str, behavior: str, level: str) -> str:
    """Let users with at least this access to an entity of a type invoke a behavior on it. Hooks do not need this."""
    entity_type = entities.type(type)
    which = _behavior(entities, entity_type.id, behavior)
    body = {"behaviorId": which, "accessLevelId": f"urn:vcloud:accessLevel:{level}"}
    entities.calls.add_behavior_grant(entities.me, entity_type.id, body)
    return f"{which}: requires {level} or higher"


@access.verb("disallow", "statecfg entity access disallow site restart")
@click.argument("type")
@click.argument("behavior")
def disallow(entities: LocalEntityCalls, type: str, behavior: str) -> str:
    """Remove the permission of all users to invoke a behavior on entities of a type."""
    entity_type = entities.type(type)
    which = _behavior(entities, entity_type.id, behavior)
    kept = entities.all(lambda me, query: entities.calls.list_behavior_grants(me, entity_type.id, query))
    values = [
        {"behaviorId": grant.behavior, "accessLevelId": grant.level}
        for grant in kept
        if urn.ref_of(grant.behavior) != which
    ]
    entities.calls.replace_behavior_grants(entities.me, entity_type.id, {"values": values})
    return f"{which}: no users"


def _behavior(entities: LocalEntityCalls, type: str, name: str) -> str:
    """Return the ref of a type's behavior. Grants use it to name the behavior."""
    behaviors = entities.all(lambda me, query: entities.calls.list_type_behaviors(me, type, query))
    id = entities.behavior(name, behaviors)
    return str(next(candidate.ref for candidate in behaviors if candidate.id == id))


@click.group("token", cls=StoreGroup, opens=LocalEntityCalls, examples=TOKENS)
def token() -> None:
    """Create, list and delete the tokens that authenticate people and programs. The store keeps digests only."""


@token.verb("list", "statecfg serve token list", JSON, COLOR)
def tokens(entities: LocalEntityCalls) -> VerbResult:
    """List the tokens and their owners."""
    all_tokens = entities.calls.list_tokens()
    rows = [(str(row.id), row.name, row.org, row.role, when(row.created), when(row.expires)) for row in all_tokens]
    lines = view.table(("TOKEN", "USER", "ORG", "ROLE", "CREATED", "EXPIRES"), rows, "token tokens")
    return VerbResult(lines, {"format": 1, "tokens": [asdict(row) for row in all_tokens]})


@token.verb("create", "statecfg serve token create alice --role author --org shop")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["administrator", "author", "viewer"]),
    default="viewer",
    help="The role of the user. Default: viewer.",
)
@click.option("--org", metavar="ORG", help="The organization of the user. Administrators belong to System.")
@click.option("--expires", metavar="DURATION", help="Lifetime as an ISO 8601 duration: P30D. Default: unlimited.")
def create_token(entities: LocalEntityCalls, name: str, role: str, org: str | None, expires: str | None) -> str:
    """Create a token for a user and print it. It is shown only once."""
    try:
        lasting = durations.seconds(expires) if expires is not None else None
    except ValueError as error:
        raise InvalidInput([problem("SC0605", str(error), durations.HELP)]) from None
    if lasting is not None and lasting <= 0:
        raise InvalidInput([problem("SC0605", f"`{expires}` ends immediately", durations.HELP)])
    if org is None and role != "administrator":
        raise click.UsageError(f"Name the organization of {name} with --org, or use --role administrator.")
    return entities.calls.add_token(name, org or PROVIDER, role, lasting)


@token.verb("delete", "statecfg serve token delete 3")
@click.argument("number", type=int)
def delete_token(entities: LocalEntityCalls, number: int) -> str:
    """Delete a token. Its sessions end."""
    if not entities.calls.delete_token(number):
        cure = "list the tokens with `statecfg serve token list`"
        raise InvalidInput([problem("SC0802", f"token {number} does not exist", cure)])
    return f"token {number}: deleted"
