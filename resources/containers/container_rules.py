"""Rules for containers and their images. Only the controller uses this module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.containers import containers
from statecfg.resources.shared import paths

_TAG = r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
_PART = r"[a-z0-9]+([._-]+[a-z0-9]+)*"
_REGISTRY = r"(localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|[A-Za-z0-9.-]+:[0-9]+)"
DIGEST = r"sha256:[0-9a-f]{64}"
_IMAGE = re.compile(rf"({_REGISTRY}/)?{_PART}(/{_PART})*{_TAG}(@{DIGEST})?\Z")
_PORT = re.compile(r"((\[[0-9a-fA-F:]+\]|[0-9.]+):)?([0-9]+(-[0-9]+)?:|:)?[0-9]+(-[0-9]+)?(/(tcp|udp|sctp))?\Z")
_RESTART = re.compile(r"(no|always|unless-stopped|on-failure(:[0-9]+)?)\Z")


def image(name: str, engine: str, what: str = "") -> None:
    """Check the name of an image.

    :raises ValueError: if it is not valid, or podman would have to guess its registry
    """
    match = _IMAGE.match(name)
    if match is None:
        raise Wrong(f"{what}{show(name)} is not the name of an image", "write it as registry.example.org/shop:1.4.2")
    if engine == "podman" and not match.group(1):
        help = f"write localhost/{name} for one of the host, or docker.io/library/{name}"
        raise Wrong(f"{what}{show(name)} does not name its registry, which podman would have to guess", help)


def check_image(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a `container_image` together.

    :raises ValueError: if they contradict each other
    """
    paths.refuse_with_absent({**attrs, "timeout": None}, ("name", "engine", "absent"))
    image(attrs["name"], attrs["engine"])
    digest = attrs.get("digest")
    if digest is not None and not re.fullmatch(DIGEST, digest):
        raise Wrong(f"digest: {show(digest)} is not a digest", "write sha256: and 64 hexadecimal digits")
    if digest is not None and "@" in attrs["name"]:
        raise ValueError("digest can't be combined with a name that has a digest")
    if attrs.get("archive") is not None:
        idle = [name for name in ("digest", "authfile", "tls_verify") if attrs.get(name) is not None]
        if idle:
            raise ValueError(f"archive can't be combined with {', '.join(idle)}")
    if attrs["engine"] == "docker":
        for name in ("authfile", "tls_verify"):
            if attrs.get(name) is not None:
                raise Wrong(f"{name}: docker has no such option", "its daemon and `docker login` have these settings")


def check_container(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a `container` together.

    :raises ValueError: if one is not valid, or they contradict each other
    """
    idle = {"running": None, "stop_timeout": None}
    paths.refuse_with_absent({**attrs, **idle}, ("name", "engine", "absent", "replace"))
    name = attrs["name"]
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,200}", name):
        raise Wrong(
            f"{show(name)} is not the name of a container", "use letters, digits, and _ . - after the first one"
        )
    if attrs["engine"] == "docker" and len(name) < 2:
        raise Wrong(f"{show(name)} is too short for docker", "write a name of two characters or more")
    if name.endswith((containers.NEW, containers.ASIDE)):
        raise Wrong(f"{show(name)} is a name that statecfg uses for former containers", "write another name")
    if attrs.get("image") is None:
        if not attrs.get("absent"):
            raise ValueError("image is required unless absent is true")
        return
    image(attrs["image"], attrs["engine"], "image: ")
    _variables(attrs)
    for port in attrs.get("ports") or ():
        if not _PORT.match(port):
            raise Wrong(f"ports: {show(port)} is not a port", "write it as 8080:80 or 127.0.0.1:8080:80/tcp")
    for volume in attrs.get("volumes") or ():
        if not re.fullmatch(r"(/|[A-Za-z0-9])[^:]*(:/[^:]*(:[A-Za-z0-9,=]+)?)?", volume):
            raise Wrong(f"volumes: {show(volume)} is not a volume", "write it as data:/srv/data or /srv/data:/data:ro")
    if attrs.get("restart") is not None and not _RESTART.match(attrs["restart"]):
        help = "write no, always, unless-stopped, on-failure or on-failure:3"
        raise Wrong(f"restart: {show(attrs['restart'])} is not a restart policy", help)
    for label in attrs.get("labels") or {}:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/-]*", label) or label.startswith("statecfg."):
            raise Wrong(f"labels: {show(label)} can't be a label", "names that begin with statecfg. are reserved")
    _arguments(attrs)


def _variables(attrs: Mapping[str, Any]) -> None:
    for variable in attrs.get("env") or {}:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", variable):
            raise Wrong(f"env: {show(variable)} is not the name of a variable", "use letters, digits and _")


def _arguments(attrs: Mapping[str, Any]) -> None:
    own = {"name", "label", "label-file", "env", "env-file", "pull", "detach", "rm", "replace", "cidfile", "publish"}
    own |= {"volume", "network", "restart", "user", "workdir", "hostname", "entrypoint"}
    for argument in attrs.get("arguments") or ():
        match = re.fullmatch(r"--([a-z][a-z0-9-]*)(=.*)?", argument)
        if match is None:
            raise Wrong(
                f"arguments: {show(argument)} is not an option", "write each in one word, such as --memory=512m"
            )
        if match.group(1) in own:
            raise Wrong(f"arguments: {show(argument)} is not allowed", "use the attributes of `container` for it")
