"""Containers of podman and docker."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import Attrs, Line, NodeOptions, PublicLine, WorkingDirectory, node_type
from statecfg.resources.containers import container_rules, containers


@node_type
def container(
    name: PublicLine,
    *,
    image: PublicLine | None = None,
    command: list[PublicLine] | None = None,
    entrypoint: PublicLine | None = None,
    env: dict[str, Line] | None = None,
    ports: list[PublicLine] | None = None,
    volumes: list[PublicLine] | None = None,
    network: PublicLine | None = None,
    restart: PublicLine | None = None,
    labels: dict[str, PublicLine] | None = None,
    user: PublicLine | None = None,
    workdir: WorkingDirectory | None = None,
    hostname: PublicLine | None = None,
    arguments: list[PublicLine] | None = None,
    running: bool = True,
    replace: bool = False,
    stop_timeout: int = 10,
    engine: Literal["podman", "docker"] = "podman",
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a container of podman or docker. For containers that systemd runs, see `quadlet`.

    statecfg stores the options in a label of the container, without the values of variables. If an option, a variable
    or the image differs, statecfg recreates the container; the plan shows the difference. What the container wrote
    outside of volumes is lost then. The image must be on the host: declare and require a `container_image`.

    statecfg changes no container that it did not create, unless `replace` is true. `restart_on` restarts the container.
    The host needs podman, or docker and its service. podman's service ``podman-restart`` starts containers at boot.

    Undo: statecfg removes a container that it created. One that it replaced comes back; volumes stay.

    :param name: the name of the container
    :param image: the name of its image, with its registry and tag
    :param command: the program and its arguments, or only arguments if the image has an entrypoint; default: that of
        the image
    :param entrypoint: the program, in place of the entrypoint of the image
    :param env: variables; values may be secrets, which all users of the engine can read
    :param ports: published ports, such as ``127.0.0.1:8080:80``
    :param volumes: volumes and directories, such as ``data:/srv/data`` or ``/srv/conf:/etc/shop:ro``
    :param network: the network, such as ``host``, ``none`` or the name of one
    :param restart: when the engine restarts it: ``no``, ``always``, ``unless-stopped``, ``on-failure`` or
        ``on-failure:3``
    :param labels: additional labels
    :param user: the user in the container, such as ``1000:1000``
    :param workdir: the working directory in the container
    :param hostname: the host name in the container
    :param arguments: further options of ``podman create``, each in one word, such as ``--memory=512m``
    :param running: whether the container must run
    :param replace: if another container has the name: stop it and rename it to ``NAME-before-statecfg``; with `absent`,
        remove it
    :param stop_timeout: seconds until a container that does not stop is killed
    :param engine: ``podman`` or ``docker``
    :param absent: there must be no container with this name

    In YAML::

        - container: shop
          image: registry.example.org/shop:1.4.2
          env: {PORT: "8080", DB_PASSWORD: !secret {env: SHOP_DB_PASSWORD}}
          ports: ["127.0.0.1:8080:8080"]
          restart: always
          requires: ["container_image:registry.example.org/shop:1.4.2"]
        - container_image: registry.example.org/shop:1.4.2

    In Python::

        container("worker", image="localhost/tool:1.0", command=["work", "--all"], network="none")
    """


@container.needs
def needs(attrs: Attrs) -> list[str]:
    """Need the engine, and the directories and files of the host."""
    unit = ["unit:docker.service"] if attrs["engine"] == "docker" else []
    sources = [volume.partition(":")[0] for volume in attrs.get("volumes") or () if ":" in volume]
    return ["program:" + attrs["engine"], *unit, *("path:" + source for source in sources if source.startswith("/"))]


container.identity(["container:{engine}: {name}"])
container.validate(container_rules.check_container)
container.reads_as_code("arguments")
container.overwrites("the undo removes the container with all that others have changed in it; its volumes stay")
container.implemented_by(containers)
