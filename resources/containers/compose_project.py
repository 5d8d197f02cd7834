"""Compose projects."""

from __future__ import annotations

import re
from typing import Literal, Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, Seconds, node_type
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.containers import compose
from statecfg.resources.shared import paths


@node_type
def compose_project(
    name: PublicLine,
    *,
    directory: AbsolutePath | None = None,
    files: list[PublicLine] | None = None,
    env_file: AbsolutePath | None = None,
    services: list[PublicLine] | None = None,
    jobs: list[PublicLine] | None = None,
    pull: Literal["missing", "always", "never"] = "missing",
    running: bool = True,
    remove_orphans: bool = False,
    replace: bool = False,
    stop_timeout: int = 10,
    timeout: Seconds = 600.0,
    engine: Literal["podman", "docker"] = "podman",
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage the containers of a compose project, with podman-compose or ``docker compose``.

    The host's own tool reads the files, and statecfg compares the result with the containers, service by service. It
    recreates the containers of a service if its definition differs, or if the name of its image leads to another image
    since. If a required node changes something in the
    directory of the project, the node is known after it. Declare the files with `file` nodes.

    Values of variables are in no report. podman-compose gives the values in ``environment`` to podman as arguments,
    which other users of the host can read: write secrets into a file with mode 0600, and name it in the service's
    ``env_file``. If a secret of the playbook would be such an argument, the node fails and changes nothing.

    The node fails if other users than root can change the files of the project, because they would have the rights of
    root.

    Containers of the project that others created are an error without `replace`, and the undo leaves them alone. With
    docker, these are containers of a project of this name in another directory.

    Undo: statecfg removes the containers of a project that it created. Volumes, networks and images stay.

    :param name: the name of the project
    :param directory: the directory with the files
    :param files: names of the files in the directory; later ones override earlier ones; default:
        ``compose.yaml``
    :param env_file: a file with variables for the files of the project; default: ``.env`` in the directory. Needs
        podman-compose 1.0.4 or later
    :param services: only these services, and those that they depend on; default: all
    :param jobs: services whose programs end, such as migrations; with docker also those on whose success others wait.
        Such a service is as defined while it runs, and after it ended with status 0
    :param pull: when images are pulled for new containers
    :param running: whether the services must run; false: their containers are stopped
    :param remove_orphans: remove the containers of services that the files no longer define
    :param replace: allow to replace and to remove containers of the project that statecfg did not create
    :param stop_timeout: seconds until a container that does not stop is killed
    :param timeout: seconds for creating and starting the containers
    :param engine: ``podman`` or ``docker``
    :param absent: the project must have no containers

    In YAML::

        - compose_project: shop
          directory: /srv/shop
          env_file: /srv/shop/settings.env
          remove_orphans: true

    In Python::

        compose_project("shop", directory="/srv/shop", engine="docker", services=["web"])
    """


@compose_project.needs
def needs(attrs: Attrs) -> list[str]:
    """Need the tool and the files."""
    tools = ["program:podman", "program:podman-compose"] if attrs["engine"] == "podman" else ["program:docker"]
    paths = compose.files(attrs) if attrs.get("directory") else []
    unit = ["unit:docker.service"] if attrs["engine"] == "docker" else []
    return [
        *tools,
        *unit,
        *("path:" + path for path in paths),
        *(["path:" + attrs["env_file"]] if attrs.get("env_file") else []),
    ]


@compose_project.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid names, and attributes that have no effect."""
    idle = dict.fromkeys(("running", "stop_timeout", "timeout", "pull"))
    paths.refuse_with_absent(
        {**attrs, **idle}, ("name", "directory", "files", "env_file", "engine", "absent", "replace")
    )
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", attrs["name"]):
        raise Wrong(f"{show(attrs['name'])} is not the name of a project", "use a-z, 0-9, and _ - after the first one")
    if not attrs.get("directory"):
        raise ValueError("directory is required")
    for file in attrs.get("files") or ():
        if not re.fullmatch(r"[A-Za-z0-9_.][^/\0]*(/[^/\0]+)*", file) or ".." in file.split("/"):
            raise Wrong(f"files: {show(file)} is not the name of a file in the directory", "write it as compose.yaml")
    for attribute, service in ((name, each) for name in ("services", "jobs") for each in attrs.get(name) or ()):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", service):
            raise Wrong(f"{attribute}: {show(service)} is not the name of a service", "write it as in the file")


compose_project.identity(["compose:{engine}: {name}"])
compose_project.implemented_by(compose)
