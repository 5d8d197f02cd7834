"""Single keys of JSON files."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import AbsolutePath, Argv, Line, Mode, NodeOptions, Owner, OwnerGroup, Suffix, node_type
from statecfg.resources.text import json_text, key_rules, keys


@node_type
def json_key(
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
    """Manage one key of a JSON file, and leave everything else as it is: order, spaces and line breaks.

    Missing objects on the way to the key are created. A new key goes to the end of its object. An empty file counts as
    an empty object. A value that is an object or a list is replaced as a whole; other values in the file stay as they
    are written. The file must be valid JSON without comments, and no object may have a key twice. JSON's null is not
    supported.

    Several of these nodes can edit the same file; each of them then needs its own `provides`. They run one after
    another, in the order of their names.

    Undo: statecfg restores the lines that the node changed, or removes those that it added. If others have changed
    lines around them, only the value is restored. If others have changed the value, it stays. Mode, owner and group are
    restored if the node sets them. If the node created the file, statecfg removes it when nothing else is in it.

    :param path: the path of the file; a link is followed
    :param key: the names on the way to the value: a string in which dots separate them, or a list
    :param value: the value: a string, a number, true, false, a list or a map
    :param create: create the file if it does not exist
    :param mode: permission bits of the file as an octal string, such as ``"0600"``
    :param owner: user who owns the file, by name or number
    :param group: group that owns it, by name or number
    :param validate: a command, as a list, that must succeed before statecfg installs the new content; ``{}`` is
        replaced by the path of the file to check
    :param backup: suffix of the copy of the old file that statecfg keeps next to the new one
    :param absent: the file must not contain the key

    In YAML::

        - json_key: /etc/docker/daemon.json
          key: log-opts.max-size
          value: 10m
          create: true

    In Python::

        json_key("/etc/docker/daemon.json", key="registry-mirrors", value=["https://mirror.example.org"])
    """


json_key.validate(key_rules.check)
keys.register(json_key, json_text)
