"""Quadlets: files from which podman makes systemd units."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, LocalPath, Name, NodeOptions, NoNul, UserName, node_type
from statecfg.resources.containers import quadlet_rules, quadlet_sources, quadlets
from statecfg.resources.services import unit_managers
from statecfg.resources.shared import drop_in_texts, file_sources, files


@node_type
def quadlet(
    name: Name,
    *,
    sections: dict[str, Any] | None = None,
    content: NoNul | None = None,
    source: LocalPath | None = None,
    template: LocalPath | None = None,
    vars: dict[str, Any] | None = None,
    user: UserName | None = None,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a file in /etc/containers/systemd from which podman makes a systemd unit, such as a container.

    statecfg makes systemd read the file, which lets podman make the unit. The node fails if podman makes no unit.
    A `service` node starts the unit: ``shop.container`` makes the service ``shop``, ``data.volume`` the service
    ``data-volume``; the setting ``ServiceName`` of podman 5 gives it another name. Its section ``Install`` starts it at
    boot. The host needs podman 4.4 or later. Every user of the host can read the file, so it must not contain secrets:
    put them into podman's own secrets, or into a `file` that ``EnvironmentFile`` names.

    If another file wins, such as one of the same name in /run/containers/systemd or a drop-in, the node fails and names
    it, already in the plan. For the quadlets of a user, statecfg does not look for such files.

    Undo: statecfg restores the file that existed before, or removes the node's file, and makes systemd read it.
    Volumes and images stay.

    :param name: the name of the file: its suffix is container, volume, network, pod, image, build or kube
    :param sections: the content as a map: section → setting → value. A list becomes one line per value
    :param content: the content as text
    :param source: a local file that provides the content, next to the playbook or in the project's ``files/``
    :param template: a local Jinja2 template that renders the content, next to the playbook or in ``templates/``
    :param vars: additional variables for the template; they override the variables of the host
    :param user: the quadlet of this user: the file is in ``~/.config/containers/systemd``, and the user's own systemd
        runs the unit. Containers without root need the user's subordinate UIDs, and a user who lingers
    :param allow_override: accept that other files of the quadlet win
    :param absent: the file must not exist; the unit must not run then

    In YAML::

        - quadlet: shop.container
          sections:
            Container: {Image: "registry.example.org/shop:1.4.2", PublishPort: "127.0.0.1:8080:8080"}
            Install: {WantedBy: multi-user.target}

    In Python::

        quadlet("data.volume", sections={"Volume": {"Label": "app=shop"}})
    """


@quadlet.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the file."""
    return ["path:" + quadlets.path_of(attrs)]


@quadlet.owns
def owns(attrs: Attrs) -> list[str]:
    """Own the file of a user where the home directory of this user is."""
    return unit_managers.owned_file(attrs.get("user"), quadlets.path_of(attrs))


@quadlet.needs
def needs(attrs: Attrs) -> list[str]:
    """Need podman, and the user."""
    return ["package:podman", *([f"user:{attrs['user']}"] if attrs.get("user") else [])]


@quadlet.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Send the content of the file."""
    if node.attrs.get("sections") is not None:
        node = node.with_attrs(content=drop_in_texts.unit(node.attrs["sections"]), sections=None)
    sent = file_sources.with_content(node, context, quadlet_rules.PRIVATE)
    path, content = quadlets.path_of(node.attrs), sent.attrs.get("content")
    if node.attrs.get("user"):
        return drop_in_texts.sent_to_home(sent, unit_managers.in_home(path), content)
    return drop_in_texts.sent(sent, path, content)


quadlet.validate(quadlet_rules.check)
quadlet.blobs(files.blobs)
quadlet.reads_as_code("content")
quadlet.effect(quadlet_sources.effect)
quadlet.implemented_by(quadlets)
