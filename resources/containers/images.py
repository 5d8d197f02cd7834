"""Images of containers: their check, the ops that change them, and the undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode, required
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.containers import engines
from statecfg.resources.containers.engines import key
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import TypedDict

    class ImageMemory(TypedDict):
        """The memory of a `container_image`.

        :ivar id: the image that had the name before
        :ivar new: the image that the node brought
        """

        id: str | None
        new: str | None


def full(name: str, engine: str) -> str:
    """Return the name of an image as its engine lists it: with a tag, and for docker without the default registry."""
    if "@" not in name and ":" not in name.rpartition("/")[2]:
        name += ":latest"
    for start in ("docker.io/library/", "docker.io/") if engine == "docker" else ():
        if name.startswith(start):
            return name[len(start) :]
    return name


def repository(name: str) -> str:
    """Return the name of an image without its tag."""
    above, _, last = name.rpartition("/")
    return (above + "/" if above else "") + last.partition(":")[0]


def _effect(engine: str, image: str, fields: Mapping[str, object] | None) -> records.Effect:
    return {engines.IMAGES: {key(engine, image): dict(fields) if fields is not None else None}}


@op
def pull(
    machine: Machine,
    engine: str,
    image: str,
    digest: str | None = None,
    authfile: str | None = None,
    tls_verify: bool | None = None,
    timeout: float = 600.0,
) -> Result:
    """Pull an image from its registry.

    :param digest: pull exactly this one, and give it the name
    """
    options = ["--authfile=" + authfile] if authfile else []
    options += [f"--tls-verify={'true' if tls_verify else 'false'}"] if tls_verify is not None else []
    exact = f"{repository(image)}@{digest}" if digest else image
    fields: dict[str, object] = {"present": True, "id": None}
    if digest:
        fields["digests"] = [digest]
    effect = _effect(engine, image, fields)
    result = machine.run([engine, "pull", "--quiet", *options, "--", exact], effect, timeout=timeout)
    if digest is None or result["status"] != "ok":
        return result
    return machine.run([engine, "tag", "--", exact, image], effect)


@op
def load(machine: Machine, engine: str, image: str, archive: str, timeout: float = 600.0) -> Result:
    """Load the images in an archive."""
    effect = _effect(engine, image, {"present": True, "id": None})
    return machine.run([engine, "load", "--quiet", "--input", archive], effect, timeout=timeout)


@op
def remove_image(machine: Machine, engine: str, image: str) -> Result:
    """Remove the name of an image, and the image with its last name. It fails if a container uses the image."""
    return machine.run([engine, "image", "rm", "--", image], _effect(engine, image, None))


@op
def tag(machine: Machine, engine: str, image_id: str, image: str) -> Result:
    """Give a name to an image."""
    return machine.run(
        [engine, "tag", "--", image_id, image], _effect(engine, image, {"present": True, "id": image_id})
    )


def present(world: World, engine: str, name: str) -> records.Fields | None:
    """Return the fields of an image; None if there is none.

    :raises CheckError: if the engine can't be read
    """
    engines.require(world, engine, engines.IMAGES)
    return world.entry(engines.IMAGES, key(engine, full(name, engine)))


def require(world: World, engine: str, name: str, node: HostNode, nodes: Mapping[str, HostNode]) -> records.Fields:
    """Return the fields of an image that a node uses.

    :raises CheckError: if it is not on the host, or if a node brings it that this node does not require
    """
    for other in nodes.values():
        same = other.type == "container_image" and other.attrs["engine"] == engine and not other.attrs.get("absent")
        if not same or full(other.attrs["name"], engine) != full(name, engine):
            continue
        if other.provides not in required(node, nodes):
            raise CheckError(f"{other.provides} brings the image {name}: add it to requires")
    found = present(world, engine, name)
    if found is None:
        raise CheckError(f"the image {name} is not on this host; declare container_image: {name} and require it")
    return found


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Pull or load a missing image, or one with another digest.

    :raises CheckError: if the engine can't be read, or there is no such archive
    """
    attrs = node.attrs
    engine, image = attrs["engine"], full(attrs["name"], attrs["engine"])
    now, digest = present(world, engine, image), attrs.get("digest")
    if attrs.get("absent"):
        return [remove_image(engine, image)] if now is not None else []
    if now is not None and (digest is None or digest in now.get("digests", ())):
        return []
    timeout = attrs.get("timeout") or 600.0
    archive = attrs.get("archive")
    if archive is None:
        return [pull(engine, image, digest, attrs.get("authfile"), attrs.get("tls_verify"), timeout)]
    if world.is_known(archive) and world.stat(archive) is None:
        raise CheckError(f"the archive {archive} does not exist; require the node that creates it")
    return [load(engine, image, archive, timeout)]


def remember(node: HostNode, world: World) -> ImageMemory:
    """Record which image has the name."""
    now = present(world, node.attrs["engine"], node.attrs["name"])
    return {"id": now["id"] if now is not None else None, "new": None}


def learn(node: HostNode, memory: ImageMemory, world: World) -> Mapping[str, Any]:
    """Record the image that the node brought."""
    now = present(world, node.attrs["engine"], node.attrs["name"])
    return {"new": now["id"] if now is not None and now["id"] != memory["id"] else memory["new"]}


def undo(node: HostNode, memory: ImageMemory, world: World) -> ActionSpec:
    """Remove an image that the node brought, unless containers use it; restore the name of the former one."""
    engine, image = node.attrs["engine"], full(node.attrs["name"], node.attrs["engine"])
    was, now = memory["id"], present(world, engine, image)
    if node.attrs.get("absent"):
        return ActionSpec(left=[f"the image {image} is not restored"] if was and now is None else [])
    if now is None or now.get("id") == was:
        return ActionSpec()
    if now.get("id") != memory["new"]:
        return ActionSpec(left=[f"the image {image} stays: others have changed it"])
    if was is not None:
        if world.entry(engines.IMAGES, key(engine, was)) is None:
            return ActionSpec(left=[f"the former image {image} is not restored: others have removed it"])
        return ActionSpec([tag(engine, was, image)])
    engines.require(world, engine)
    users = [name for name, fields in world.facet(engines.CONTAINERS).items() if name.startswith(engine + " ")
             and fields.get("image_id") == now["id"]]  # fmt: skip
    if users:
        return ActionSpec(left=[f"the image {image} stays: used by {', '.join(sorted(users))}"])
    return ActionSpec([remove_image(engine, image)])
