"""Single keys of TOML files."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import AbsolutePath, Argv, Attrs, Line, Mode, NodeOptions, Owner, OwnerGroup, Suffix, node_type
from statecfg.resources.text import key_rules, keys, toml_text


@node_type
def toml_key(
    path: AbsolutePath,
    *,
    key: Line | list[Line],
    value: Any = None,
    create: bool = False,
    mode: Mode | None = None,
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    validate: Argv | None = None,
    backup: Suffix | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage one key of a TOML file, and leave all other lines as they are: comments, order and spaces.

    A new key goes to the end of its table; a missing table goes to the end of the file. statecfg refuses keys inside
    inline tables and arrays of tables, and keys that are tables themselves. It refuses a file that is not TOML, but it
    does not find every mistake.

    Several of these nodes can edit the same file; each of them then needs its own `provides`. They run one after
    another, in the order of their names.

    Undo: statecfg restores the lines that the node changed, or removes those that it added. If others have changed
    lines around them, only the value is restored. If others have changed the value, it stays. Mode, owner and group are
    restored if the node sets them. If the node created the file, statecfg removes it when nothing else is in it.

    :param path: the path of the file; a link is followed
    :param key: the names on the way to the value: a string in which dots separate them, or a list
    :param value: the value: a string, a number, true, false, or a list of these
    :param create: create the file if it does not exist
    :param mode: permission bits of the file as an octal string, such as ``"0600"``
    :param owner: user who owns the file, by name or number
    :param group: group that owns it, by name or number
    :param validate: a command, as a list, that must succeed before statecfg installs the new content; ``{}`` is
        replaced by the path of the file to check
    :param backup: suffix of the copy of the old file that statecfg keeps next to the new one
    :param absent: the file must not contain the key

    In YAML::

        - toml_key: /etc/containerd/config.toml
          key: grpc.max_recv_message_size
          value: 16777216

    In Python::

        toml_key("/etc/app.toml", key=["servers", "db.example.org"], value=["192.0.2.1", "192.0.2.2"])
    """


@toml_key.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that contradict each other, and what such a file can't contain."""
    key_rules.check(attrs)
    key_rules.check_simple(attrs.get("value"))


keys.register(toml_key, toml_text)
