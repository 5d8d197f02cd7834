"""Unit files of systemd, drop-ins and timers."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, LocalPath, Name, NodeOptions, NoNul, UserName, node_type
from statecfg.resources.services import systemd, unit_files, unit_managers, unit_sources
from statecfg.resources.shared import drop_in_texts, file_sources, files, paths

PRIVATE = (
    "put it into a `file` of mode 0600, and name that in EnvironmentFile or LoadCredential"  # the help for secrets
)
CONTENT = ("sections", "content", "source", "template")


@node_type
def systemd_unit(
    name: Name,
    *,
    sections: dict[str, Any] | None = None,
    content: NoNul | None = None,
    source: LocalPath | None = None,
    template: LocalPath | None = None,
    vars: dict[str, Any] | None = None,
    drop_in: Name | None = None,
    user: UserName | None = None,
    all_users: bool = False,
    verify: bool = True,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage the file of a systemd unit of any kind in /etc/systemd/system, or a drop-in of a unit.

    statecfg makes systemd read the changed file. Before it installs a file, ``systemd-analyze verify`` checks the unit
    with it: unknown settings, wrong values and missing programs are errors. A `service` node starts the unit and makes
    it start at boot. It requires this node automatically; write `restart_on` to restart it with each change. Every user
    of the host can read the file, so it must not contain secrets: put them into a `file`, and name it in
    ``EnvironmentFile`` or ``LoadCredential``.

    systemd reads the drop-ins of a unit after its file, in the order of their names. If a later one changes a setting
    of the node, the node fails and names its line, already in the plan.

    Undo: statecfg restores the file that existed before, or removes the node's file, and makes systemd read it.

    :param name: the name of the unit; without a suffix such as ``.timer``, it is a service
    :param sections: the content as a map: section → setting → value. A list becomes one line per value
    :param content: the content as text
    :param source: a local file that provides the content, next to the playbook or in the project's ``files/``
    :param template: a local Jinja2 template that renders the content, next to the playbook or in ``templates/``
    :param vars: additional variables for the template; they override the variables of the host
    :param drop_in: the name of a drop-in, without ``.conf``: the node manages this file in the directory ``NAME.d``
    :param user: the unit belongs to this user: the file is in ``~/.config/systemd/user``, and belongs to the user.
        statecfg also creates the directories above it
    :param all_users: the file is in ``/etc/systemd/user``, from which the own systemd of each user reads it
    :param verify: false: install the file without a check
    :param allow_override: accept that other files of the unit win
    :param absent: the file must not exist; the unit must neither run nor start at boot then

    In YAML::

        - systemd_unit: report.service
          sections:
            Service: {Type: oneshot, ExecStart: /usr/bin/true, User: nobody}
        - systemd_unit: report.timer
          sections:
            Timer: {OnCalendar: daily, Persistent: true}
            Install: {WantedBy: timers.target}

    In Python::

        systemd_unit("nginx", drop_in="limits", sections={"Service": {"LimitNOFILE": 65536}})
    """


@systemd_unit.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the file."""
    return ["path:" + unit_files.path_of(attrs)]


@systemd_unit.owns
def owns(attrs: Attrs) -> list[str]:
    """Own the file of a user where the home directory of this user is."""
    return unit_managers.owned_file(attrs.get("user"), unit_files.path_of(attrs))


@systemd_unit.needs
def needs(attrs: Attrs) -> list[str]:
    """Need what the sections name; a drop-in needs its unit, and a timer what it starts."""
    return list(drop_in_texts.needed(systemd.full_name(attrs), attrs))


@systemd_unit.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse missing, several or invalid contents, and a name that is not one of a unit."""
    paths.refuse_with_absent(
        {**attrs, "verify": None}, ("name", "drop_in", "user", "all_users", "allow_override", "absent")
    )
    if attrs.get("all_users") and attrs.get("user"):
        raise ValueError("either user or all_users: all_users is for the units of every user")
    drop_in_texts.check_unit_name(systemd.unit_name(attrs["name"]))
    for name in ("content", "vars"):
        file_sources.refuse_secret(attrs.get(name), name, PRIVATE)
    drop_in_texts.check_content(attrs, CONTENT)
    drop_in_texts.check_sections(attrs.get("sections") or {})


@systemd_unit.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Send the content of the file, and whether the unit can start at boot."""
    attrs = node.attrs
    path = unit_files.path_of(attrs)
    if attrs.get("sections") is not None:
        node = node.with_attrs(content=drop_in_texts.unit(attrs["sections"]), sections=None)
    sent = file_sources.with_content(node, context, PRIVATE)
    content = sent.attrs.get("content")
    installable = drop_in_texts.can_be_enabled(content) or None
    if attrs.get("user"):
        return drop_in_texts.sent_to_home(sent, unit_managers.in_home(path), content, installable=installable)
    return drop_in_texts.sent(sent, path, content, installable=installable)


systemd_unit.blobs(files.blobs)
systemd_unit.reads_as_code("content")
systemd_unit.effect(unit_sources.effect)
systemd_unit.implemented_by(unit_files)
