"""The facet with the services of compose projects, from the labels of their containers."""

from __future__ import annotations

import json
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.machine.world import World
from statecfg.resources.containers import engines, images
from statecfg.resources.shared import records

SERVICES = "compose_service"
LABEL = "statecfg.compose"  # JSON: digests of the definitions of the services, and a random number
_PROJECT, _SERVICE = "com.docker.compose.project", "com.docker.compose.service"
_DIRECTORY = "com.docker.compose.project.working_dir"
_ONE_OFF, _HASH = "com.docker.compose.oneoff", "com.docker.compose.config-hash"


def key(engine: str, project: str, service: str) -> str:
    """Return the key of a service in its facet."""
    return f"{engine} {project} {service}"


def _digest(engine: str, labels: dict[str, str], image: dict[str, str]) -> str | None:
    """Return the digest of the definition of a container; None if statecfg did not create it.

    :param image: the labels of its image, which include ours if the image was made from a container
    """
    if engine == "docker":
        return labels.get(_HASH, "")
    if LABEL not in labels or image.get(LABEL) == labels[LABEL]:
        return None
    try:
        digest = json.loads(labels[LABEL])["hashes"].get(labels[_SERVICE])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return str(digest)


@facet(SERVICES, volatile=True)
def services(host: Any) -> dict[str, records.Fields]:
    """Load the services of all projects. An engine that can't be read has an entry with the reason.

    `number` is the number of containers, and `images` is a map from the names of their images to the ids. `succeeded`
    means that the program of each of them has ended with status 0.
    """
    loaded: dict[str, dict[str, Any]] = {}
    unread: dict[str, records.Fields] = {}
    found_images = dict(engines.read_all(host, "image"))
    for engine, found in engines.read_all(host, "container"):
        known = found_images.get(engine, ())
        problem = next((each for each in (found, known) if isinstance(each, str)), None)
        if problem is not None:
            unread[engine] = {"unread": problem}
        labels_of = {
            each["Id"]: (each.get("Config") or {}).get("Labels") or {} for each in known if isinstance(each, dict)
        }
        for each in found if not isinstance(found, str) else ():
            labels = (each.get("Config") or {}).get("Labels") or {}
            if not labels.get(_PROJECT) or not labels.get(_SERVICE) or labels.get(_ONE_OFF) == "True":
                continue
            entry = loaded.setdefault(
                key(engine, labels[_PROJECT], labels[_SERVICE]),
                {"states": [], "ended": [], "containers": [], "hashes": [], "images": {}},
            )
            digest = _digest(engine, labels, labels_of.get(each["Image"], {}))
            if digest is None:
                entry["foreign"] = True
            if engine == "docker":
                entry["directories"] = sorted({*entry.get("directories", ()), labels.get(_DIRECTORY, "")})
            entry["states"].append(bool(each["State"].get("Running")))
            entry["ended"].append((each["State"].get("Status"), each["State"].get("ExitCode")) == ("exited", 0))
            entry["containers"].append(engines.name_of(each))
            entry["images"][each.get("ImageName") or each["Config"]["Image"]] = engines.plain_id(each["Image"])
            entry["hashes"] = sorted({*entry["hashes"], digest or ""})
    for entry in loaded.values():
        states, ended = entry.pop("states"), entry.pop("ended")
        entry["state"] = "running" if all(states) else "partly running" if any(states) else "stopped"
        entry["containers"].sort()
        entry["number"] = len(entry["containers"])
        if all(ended):
            entry["succeeded"] = True
    return {**loaded, **unread}


def is_outdated(world: World, engine: str, entry: records.Fields) -> bool:
    """Return whether the name of an image leads to another image than the one that a container was made from."""
    for name, image_id in (entry.get("images") or {}).items():
        image = world.entry(engines.IMAGES, engines.key(engine, images.full(name, engine)))
        if image is not None and "id" in image and image["id"] != image_id:
            return True
    return False


def is_foreign(entry: records.Fields, directory: str | None) -> bool:
    """Return whether others created a container of a service.

    Docker's own labels name the directory of the project. Those of podman-compose don't, so statecfg adds a label.

    :param directory: the directory of the project; None if the node does not name it
    """
    other = directory is not None and any(each != directory for each in entry.get("directories", ()))
    return bool(entry.get("foreign")) or other


def of(world: World, engine: str, project: str) -> dict[str, records.Fields]:
    """Return the services of a project that have containers.

    :raises CheckError: if the engine can't be read; an empty result would mean that the project has no containers
    """
    problem = (world.facet(SERVICES).get(engine) or {}).get("unread")
    if problem:
        raise CheckError(f"the containers of {engine} can't be read: {problem}; try again")
    start = key(engine, project, "")
    return {name[len(start) :]: entry for name, entry in world.facet(SERVICES).items() if name.startswith(start)}
