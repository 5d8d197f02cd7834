"""Engines of containers (podman, docker): the facets with their containers and images.

A facet has one entry per engine, which tells whether it could be read, and one per container or image. It contains what
all users of the engine can see; the values of variables are in a separate facet, which no report shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.machine.world import Probe, World
from statecfg.resources.shared import records

ENGINES = ("podman", "docker")
DIRECTORIES = ("/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin", "/sbin")
LABEL = "statecfg.container"  # JSON: name and options of a container that statecfg created, and a random number
CONTAINERS, IMAGES, ENVIRONMENTS = "container", "container_image", "container_environment"
LISTS = {"container": ["ps", "--all", "--quiet", "--no-trunc"], "image": ["images", "--all", "--quiet", "--no-trunc"]}
_AT_ONCE = 50  # containers or images that one program describes


def key(engine: str, name: str) -> str:
    """Return the key of a container or image in its facet."""
    return f"{engine} {name}"


def plain_id(text: str) -> str:
    """Return the id of an image without its kind of digest, which only docker writes."""
    return text[7:] if text.startswith("sha256:") else text


def why(answer: Probe) -> str:
    """Return why a program failed."""
    lines = answer.errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else f"exit status {answer.status}"


def _described(host: World, engine: str, object_type: str) -> list[Mapping[str, Any]]:
    """Return what an engine tells about all its containers or images.

    :raises LookupError: if it fails
    """
    listed = host.probe([engine, *LISTS[object_type]])
    if listed.status:
        raise LookupError(why(listed))
    ids, found = sorted(set(listed.text.split())), []
    for start in range(0, len(ids), _AT_ONCE):
        answer = host.probe([engine, object_type, "inspect", *ids[start : start + _AT_ONCE]])
        if answer.status:
            raise LookupError(why(answer))
        try:
            found += json.loads(answer.text)
        except ValueError:
            raise LookupError("its answer is not JSON") from None
    return found


def read_all(host: World, object_type: str) -> Iterator[tuple[str, list[Mapping[str, Any]] | str]]:
    """Yield each engine of the host and what it tells, or why it fails."""
    for engine in ENGINES:
        if any(host.stat(f"{directory}/{engine}") is not None for directory in DIRECTORIES):
            try:
                yield engine, _described(host, engine, object_type)
            except LookupError as problem:
                yield engine, str(problem)


def _label(labels: dict[str, str] | None) -> Mapping[str, Any]:
    """Return what our label says; {} if there is none."""
    try:
        label = json.loads((labels or {}).get(LABEL, "{}"))
    except ValueError:
        return {}
    return label if isinstance(label, dict) and isinstance(label.get("options"), dict) else {}


def name_of(container: Mapping[str, Any]) -> str:
    return str(container["Name"]).lstrip("/")  # docker's begin with a slash


@facet(CONTAINERS, volatile=True)
def containers(host: Any) -> dict[str, records.Fields]:
    """Load the containers of all engines. Those that statecfg created have their options as fields."""
    loaded: dict[str, records.Fields] = {}
    for engine, found in read_all(host, "container"):
        loaded[engine] = {"unread": found} if isinstance(found, str) else {"read": True}
        for each in found if not isinstance(found, str) else ():
            label, name = _label((each.get("Config") or {}).get("Labels")), name_of(each)
            fields: dict[str, Any] = {
                "state": "running" if each["State"].get("Running") else "stopped",
                "image_id": plain_id(each["Image"]),
            }
            if label.get("name") != name:  # another one's, or of an image that was made from our container
                fields.update({"foreign": True, "intended": label.get("name")})
            else:
                fields.update(label["options"], number=label.get("number"))
            loaded[key(engine, name)] = fields
    return loaded


@facet(ENVIRONMENTS, volatile=True)
def environments(host: Any) -> dict[str, records.Fields]:
    """Load the variables of all containers. Reports never show them."""
    loaded: dict[str, records.Fields] = {}
    for engine, found in read_all(host, "container"):
        for each in found if not isinstance(found, str) else ():
            pairs = (text.partition("=") for text in each["Config"].get("Env") or ())
            loaded[key(engine, name_of(each))] = {name: value for name, _, value in pairs}
    return loaded


@facet(IMAGES, volatile=True)
def images(host: Any) -> dict[str, records.Fields]:
    """Load the images of all engines: one entry per name, and one per id."""
    loaded: dict[str, records.Fields] = {}
    for engine, found in read_all(host, "image"):
        loaded[engine] = {"unread": found} if isinstance(found, str) else {"read": True}
        for each in found if not isinstance(found, str) else ():
            names = [*(each.get("RepoTags") or ()), *(each.get("RepoDigests") or ())]
            number = _label((each.get("Config") or {}).get("Labels")).get("number")
            image_id = plain_id(each["Id"])
            fields: dict[str, Any] = {
                "id": image_id,
                "digests": sorted(name.rpartition("@")[2] for name in names if "@" in name),
            }
            for name in names:
                loaded[key(engine, name)] = {"present": True, **fields}
            loaded[key(engine, image_id)] = {"names": sorted(names), "number": number}
    return loaded


def require(world: World, engine: str, facet: str = CONTAINERS) -> None:
    """Check that an engine could be read.

    :raises Unknown: if a required node may install or start it
    :raises CheckError: if it is missing, or fails
    """
    state = world.entry(facet, engine)
    if state is not None and not state.get("unread"):
        return
    object_type = "image" if facet == IMAGES else "container"
    answer = world.probe([engine, *LISTS[object_type]])
    reason = (state or {}).get("unread") or why(answer)
    text = "the %ss of %s can't be read: %s; require the package or service that provides %s"
    raise CheckError(text % (object_type, engine, reason, engine))


def container(world: World, engine: str, name: str) -> records.Fields | None:
    """Return the fields of a container; None if there is none.

    :raises CheckError: if the engine can't be read
    """
    require(world, engine)
    found = world.entry(CONTAINERS, key(engine, name))
    if found is None or found.get("foreign") or not found.get("number"):
        return found
    require(world, engine, IMAGES)
    image = world.entry(IMAGES, key(engine, found.get("image_id") or ""))
    if image is not None and image.get("number") == found["number"]:  # its label is that of its image
        return {"state": found["state"], "image_id": found["image_id"], "foreign": True}
    return found
