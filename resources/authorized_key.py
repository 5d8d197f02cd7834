"""Keys with which somebody may log in over SSH."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Line, Name, NodeOptions, PublicLine, UserName, node_type
from statecfg.resources.shared import authorized_keys, entry_rules, paths


@node_type
def authorized_key(
    name: Name,
    *,
    user: UserName,
    key: PublicLine,
    restrictions: list[Line] | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Allow logins over SSH as a user with a key. The key is in ``~/.ssh/authorized_keys`` of the user.

    statecfg creates the directory and the file, if they are missing, with the modes that sshd requires. Other keys in
    the file stay. To manage all keys of a user together, use a `file`.

    Undo: statecfg restores the former line with this key, or removes the key. If the node created the file or the
    directory, statecfg removes it when nothing else is in it.

    :param name: whose key it is, such as ``ann@laptop``; it becomes the comment of a key without one
    :param user: the user who may log in
    :param key: the public key: type, key and optionally a comment, such as ``ssh-ed25519 AAAA… ann@laptop``
    :param restrictions: options of sshd for this key, such as ``restrict`` or ``from="192.0.2.*"``
    :param absent: the user's file must not contain the key

    In YAML::

        - authorized_key: ann@laptop
          user: deploy
          key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f

    In Python::

        key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
        authorized_key("backup", user="root", key=key, restrictions=["restrict", 'command="/usr/local/bin/backup"'])
    """


@authorized_key.claims
def claims(attrs: dict[str, Any]) -> list[str]:
    """Claim the key among those of the user."""
    return ["authorized_key:%s: %s" % (attrs["user"], " ".join(attrs["key"].split()[:2]))]


@authorized_key.validate
def contradictions(attrs: dict[str, Any]) -> None:
    """Refuse an invalid key."""
    paths.refuse_with_absent(attrs, ("name", "user", "key", "absent"))
    entry_rules.check_key(attrs["key"])
    if any(not text for text in attrs.get("restrictions") or ()):
        raise ValueError("restrictions contains an empty text")


authorized_key.check(authorized_keys.check)
authorized_key.remember(authorized_keys.remember)
authorized_key.undo(authorized_keys.undo)
