"""Users of the host."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import (
    AbsolutePath,
    Attrs,
    GroupName,
    Id,
    Line,
    NodeOptions,
    PublicLine,
    UserName,
    node_type,
)
from statecfg.resources.accounts import user_entry, users
from statecfg.resources.shared.paths import refuse_with_absent

SHORTEST = 4  # characters of a hash; a shorter one ("!", "*") means no password and is not secret


@node_type
def user(
    name: UserName,
    *,
    uid: Id | None = None,
    group: GroupName | None = None,
    groups: list[GroupName] | None = None,
    exact_groups: bool = False,
    home: AbsolutePath | None = None,
    shell: AbsolutePath | None = None,
    comment: PublicLine | None = None,
    create_home: bool | None = None,
    system: bool = False,
    password_hash: Line | None = None,
    linger: bool | None = None,
    absent: bool = False,
    remove_home: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a local user of the host (not one from a directory service). Attributes that you omit stay as they are.

    Undo: statecfg removes a user that did not exist before; the home directory stays unless you set `remove_home`. For
    a user that existed before, it restores the attributes that the node sets. statecfg does not store passwords: a
    changed password stays changed, and a restored user has a locked password.

    :param name: the name of the user
    :param uid: the UID; by default, the host chooses one
    :param group: the primary group; by default, a new user gets a group with the user's name
    :param groups: additional groups of the user
    :param exact_groups: remove the user from all other groups
    :param home: the home directory; an existing home directory is not moved
    :param shell: the login shell
    :param comment: the full name, as in ``/etc/passwd``
    :param create_home: create the home directory; by default, for new users that are not system users
    :param system: a new user gets a UID from the system range and no home directory
    :param password_hash: the password, hashed by crypt(3); with ``"!"``, no password is valid. statecfg passes it to
        the host's own tool through standard input, never as an argument
    :param linger: true: systemd runs the user's units from boot on, also while the user is not logged in. A `service`
        with `user` that must run needs this. false: only while the user is logged in
    :param absent: the user must not exist
    :param remove_home: remove the home directory together with the user; if the home directory existed before the user,
        only with `absent`

    In YAML::

        - user: deploy
          groups: [www-data]
          shell: /bin/bash

    In Python::

        user("deploy", uid=2000, password_hash=secret("deploy-password", env="DEPLOY_PASSWORD"))
    """


user.manners = ("create_home", "system", "remove_home")


@user.owns
def owns(attrs: Attrs) -> list[str]:
    """Own the UID, the home directory, the memberships, and the list of the groups if it is complete."""
    name, groups = attrs["name"], attrs.get("groups") or ()
    if attrs.get("absent"):
        return [f"whole:the groups of {name}", f"whole:the keys of {name}"]
    found = [f"uid:{attrs['uid']}"] if attrs.get("uid") is not None else []
    found.append(f"part:path:{attrs.get('home') or '~' + name}")
    found += [f"adds:the members of {group}: {name}" for group in groups]
    if attrs.get("exact_groups"):
        found.append(f"whole:the groups of {name}")
    return found + [f"part:the groups of {name}: {group}" for group in groups]


@user.needs
def needs(attrs: Attrs) -> list[str]:
    """Need the groups, the directory of the home directory, and the shell."""
    names = ["group:" + name for name in [attrs.get("group"), *(attrs.get("groups") or ())] if name]
    names += ["inside:" + attrs["home"]] if attrs.get("home") else []
    return names + (["program:" + attrs["shell"]] if attrs.get("shell") else [])


@user.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that contradict each other or have no effect together."""
    refuse_with_absent(attrs, ("name", "absent", "remove_home"))
    if attrs.get("exact_groups") and attrs.get("groups") is None:
        raise ValueError("exact_groups requires groups; an empty list means no groups")
    for field in ("password_hash", "comment", "home", "shell"):
        value = attrs.get(field)
        if isinstance(value, str) and users.BREAKING.intersection(value):
            raise ValueError(f"{field} has a colon or line break, which would end the field in the host's files")
    if attrs["name"] == "root" and (attrs.get("absent") or attrs.get("uid")):
        raise ValueError("root can neither be removed nor get another UID")


@user.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Turn the hash into a secret, so that no report shows it. Passwords can be tried against a known hash."""
    password = node.attrs.get("password_hash")
    if not isinstance(password, str) or len(password) < SHORTEST:
        return node
    return node.with_attrs(password_hash=context.secret("password-of-" + node.attrs["name"], password))


user.managed_by(user_entry.UserEntry)
user.logins()
