"""Single keys of INI files."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Argv, Attrs, Line, Mode, NodeOptions, Owner, OwnerGroup, Suffix, node_type
from statecfg.resources.text import ini_text, key_rules, keys


@node_type
def ini_key(
    path: AbsolutePath,
    *,
    section: Line | None = None,
    key: Line,
    value: Line | int | float | bool | None = None,
    create: bool = False,
    mode: Mode | None = None,
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    validate: Argv | None = None,
    backup: Suffix | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage one key of an INI file, and leave all other lines as they are: comments, order and spaces.

    A new key goes after the last key of its section; a new section goes to the end. `true` and `false` are written in
    lower case, and quotes are part of the value. statecfg writes separator and indentation like the other keys of the
    file. It refuses a key that is in the section twice, or whose value continues in the next line, and a new key for a
    section that the file has twice. Many programs ignore the case of sections and keys, and in keys also spaces and the
    difference of `-` and `_`: if the file has such a section or key, write it as the file does.

    Several of these nodes can edit the same file; each of them then needs its own `provides`. They run one after
    another, in the order of their names.

    Undo: statecfg restores the lines that the node changed, or removes those that it added. If others have changed
    lines around them, only the value is restored. If others have changed the value, it stays. Mode, owner and group are
    restored if the node sets them. If the node created the file, statecfg removes it when nothing else is in it.

    :param path: the path of the file; a link is followed
    :param section: the section, without brackets; without it, the keys before the first section
    :param key: the name of the key
    :param value: the value: one line, a number, true or false
    :param create: create the file if it does not exist
    :param mode: permission bits of the file as an octal string, such as ``"0600"``
    :param owner: user who owns the file, by name or number
    :param group: group that owns it, by name or number
    :param validate: a command, as a list, that must succeed before statecfg installs the new content; ``{}`` is
        replaced by the path of the file to check
    :param backup: suffix of the copy of the old file that statecfg keeps next to the new one
    :param absent: the file must not contain the key

    In YAML::

        - ini_key: /etc/php/8.2/fpm/php.ini
          section: PHP
          key: memory_limit
          value: 256M

    In Python::

        ini_key("/etc/systemd/journald.conf", section="Journal", key="SystemMaxUse", value="1G")
    """


@ini_key.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that contradict each other, and what such a file can't contain."""
    key_rules.check(attrs, ini=True)
    key_rules.check_ini(attrs)


keys.register(ini_key, ini_text)
