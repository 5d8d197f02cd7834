"""Keys for logins over SSH."""

from __future__ import annotations

import re
from typing import Unpack

from statecfg import Attrs, Line, Name, NodeOptions, PublicLine, UserName, node_type
from statecfg.resources.accounts import authorized_keys, key_effect
from statecfg.resources.shared import entry_rules, item_rules, paths


@node_type
def authorized_key(
    name: Name,
    *,
    user: UserName,
    key: PublicLine | None = None,
    restrictions: list[Line] | None = None,
    all_keys: list[PublicLine] | None = None,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Allow logins over SSH as a user with a key. The key is in ``~/.ssh/authorized_keys`` of the user.

    statecfg creates the directory and the file, if they are missing, with the modes that sshd requires. Other keys in
    the file stay. With `all_keys` instead of `key`, the file contains exactly these keys: statecfg removes all other
    lines. Then no other node may manage keys of this user, and the list must contain the key with which statecfg itself
    logs in as this user.

    If the file has several lines with the key, one line stays, because sshd uses the first one. If sshd does not use
    the node's key, the node fails in the plan and says why: sshd reads another file, takes the key from an earlier
    file, or refuses the modes of the home directory.

    Undo: statecfg restores the former line with this key, or removes the key. With `all_keys`, it restores the former
    file. If the node created the file or the directory, statecfg removes it when nothing else is in it.

    :param name: whose key it is, such as ``ann@laptop``; it becomes the comment of a single key without one
    :param user: the user who may log in
    :param key: the public key: type, key and optionally a comment, such as ``ssh-ed25519 AAAA… ann@laptop``
    :param restrictions: options of sshd for this key, such as ``restrict`` or ``from="192.0.2.*"``
    :param all_keys: instead of `key`: all lines of the file, each with a key and, if necessary, options of sshd in
        front of it
    :param allow_override: accept that sshd does not use the key as defined
    :param absent: the user's file must not contain the key

    In YAML::

        - authorized_key: ann@laptop
          user: deploy
          key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f

    In Python::

        key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
        authorized_key("backup", user="root", key=key, restrictions=["restrict", 'command="/usr/local/bin/backup"'])
    """


@authorized_key.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the key, or the list, among the keys of the user."""
    what = "all" if attrs.get("all_keys") is not None else " ".join(attrs["key"].split()[:2])
    return [f"authorized_key:{attrs['user']}: {what}"]


@authorized_key.owns
def owns(attrs: Attrs) -> list[str]:
    """Own the key, or the list of all keys, and with it a part of the file."""
    user, keys = attrs["user"], attrs.get("all_keys")
    listed = [key_of(line) for line in ([attrs["key"]] if keys is None else keys)]
    found = [f"path:~{user}/.ssh/authorized_keys" if keys is not None else f"part:path:~{user}/.ssh/authorized_keys"]
    found += [f"whole:the keys of {user}"] if keys is not None else []
    return found + [f"part:the keys of {user}: {key}" for key in listed]


def key_of(line: str) -> str:
    """Return type and key of a line of authorized_keys."""
    found = re.search(r"(?:^|\s)((?:ssh|ecdsa|sk)-[a-z0-9@.-]+\s+[A-Za-z0-9+/=]+)(?:\s|$)", line)
    return " ".join((found.group(1) if found else line).split())


@authorized_key.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse an invalid key, and a key beside the list of all keys."""
    if (attrs.get("key") is None) == (attrs.get("all_keys") is None):
        raise ValueError("either key or all_keys is required")
    paths.refuse_with_absent(attrs, ("name", "user", "key", "allow_override", "absent"))
    if attrs.get("all_keys") is not None:
        if attrs.get("restrictions") is not None or attrs.get("absent"):
            raise ValueError("all_keys can't be combined with restrictions or absent")
        entry_rules.check_keys(attrs["all_keys"])
        return
    entry_rules.check_key(attrs["key"])
    if any(not text for text in attrs.get("restrictions") or ()):
        raise ValueError("restrictions contains an empty text")
    item_rules.check_restrictions(attrs.get("restrictions") or ())


authorized_key.effect(key_effect.effect)
authorized_key.reads_as_code("restrictions")
authorized_key.implemented_by(authorized_keys)
authorized_key.logins()
