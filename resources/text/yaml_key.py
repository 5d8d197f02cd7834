"""Single keys of YAML files."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import AbsolutePath, Argv, Attrs, Line, Mode, NodeOptions, Owner, OwnerGroup, Suffix, node_type
from statecfg.resources.text import key_rules, keys, yaml_text


@node_type
def yaml_key(
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
    """Manage one key of a YAML file, and leave all other lines as they are: comments, order and spaces.

    statecfg edits block maps: every name on the way to the key is in its own line, as `key:`. It refuses anything else
    on this way, such as `{…}`, anchors, tags and tabs, and files with several documents. The value itself may have any
    form, and is replaced as a whole. Missing maps are created, also where the file has `null` or `~`. A new key goes to
    the end of its map. Strings get quotes where readers of YAML could disagree about them, and lists are written in one
    line.

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

        - yaml_key: /etc/netdata/go.d.conf
          key: modules.nginx
          value: true

    In Python::

        yaml_key("/etc/mongod.conf", key="net.bindIp", value=["127.0.0.1", "192.0.2.1"])
    """


@yaml_key.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that contradict each other, and what such a file can't contain."""
    key_rules.check(attrs)
    key_rules.check_simple(attrs.get("value"))


keys.register(yaml_key, yaml_text)
