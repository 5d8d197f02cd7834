"""Images of containers."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, Seconds, node_type
from statecfg.resources.containers import container_rules, images


@node_type
def container_image(
    name: PublicLine,
    *,
    digest: PublicLine | None = None,
    archive: AbsolutePath | None = None,
    authfile: AbsolutePath | None = None,
    tls_verify: bool | None = None,
    engine: Literal["podman", "docker"] = "podman",
    timeout: Seconds = 600.0,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage an image of containers on the host, with podman or docker.

    The image is pulled if the host has none with this name. The check asks no registry, so an image whose tag has moved
    in the registry stays: write another tag, or a `digest`. The host needs podman, or docker and its service.

    Undo: statecfg removes an image that it pulled, unless containers use it, or gives the name back to the former
    image.

    :param name: the name of the image, with its registry and tag, such as ``registry.example.org/shop:1.4.2``
    :param digest: the image must have this digest, such as ``sha256:9f86…``; otherwise statecfg pulls it
    :param archive: a file of the host from which the image is loaded, in place of a registry, as ``podman save``
        writes it
    :param authfile: a file of the host with logins for registries; only for podman
    :param tls_verify: whether the registry must have a valid certificate; only for podman
    :param engine: ``podman`` or ``docker``
    :param timeout: seconds for pulling or loading the image
    :param absent: no image must have this name; fails if a container uses the image

    In YAML::

        - container_image: registry.example.org/shop:1.4.2
          authfile: /root/registries.json

    In Python::

        container_image("localhost/tool:1.0", archive="/srv/tool.tar")
    """


@container_image.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the name of the image."""
    return [f"image:{attrs['engine']}: {images.full(attrs['name'], attrs['engine'])}"]


@container_image.needs
def needs(attrs: Attrs) -> list[str]:
    """Need the engine, and the files."""
    unit = ["unit:docker.service"] if attrs["engine"] == "docker" else []
    files = ["path:" + attrs[name] for name in ("archive", "authfile") if attrs.get(name)]
    return ["program:" + attrs["engine"], *unit, *files]


container_image.validate(container_rules.check_image)
container_image.implemented_by(images)
