"""What the engines of containers tell, from recorded outputs. `tests/host/` has those that run podman."""

from __future__ import annotations

import json

import pytest

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import FACETS
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.world import Probe
from statecfg.resources.containers import compose_services, engines  # noqa: F401  # they define the facets

# Recorded with Docker 20.10.24 and its client 28.2.2, which print many more fields.
DOCKER_CONTAINER = """[{
  "Id": "c89ad37bd559", "Name": "/shop", "Image": "sha256:061cf57f3b25",
  "State": {"Status": "created", "Running": false},
  "Config": {"Env": ["A=b c ", "B='q'"], "Image": "localhost/base:1", "Labels": %s}
}]"""
DOCKER_IMAGE = """[{
  "Id": "sha256:061cf57f3b25", "RepoTags": ["localhost/base:1"], "RepoDigests": [], "Config": {"Labels": null}
}]"""
LISTS = {
    "docker ps --all --quiet --no-trunc": Probe(0, b"c89ad37bd559\n"),
    "docker images --all --quiet --no-trunc": Probe(0, b"sha256:061cf57f3b25\nsha256:061cf57f3b25\n"),
    "docker image inspect sha256:061cf57f3b25": Probe(0, DOCKER_IMAGE.encode()),
}


def docker(labels: dict[str, str]) -> MemoryMachine:
    """Return a host with docker, an image, and a container with these labels."""
    told = Probe(0, (DOCKER_CONTAINER % json.dumps(labels)).encode())
    return MemoryMachine({"/usr/bin/docker": ""}, probes={**LISTS, "docker container inspect c89ad37bd559": told})


def test_containers_of_docker_are_loaded() -> None:
    stopped = {"state": "stopped", "image_id": "061cf57f3b25"}
    foreign = {**stopped, "foreign": True, "intended": None}
    assert FACETS["container"].load(docker({})) == {"docker": {"read": True}, "docker shop": foreign}
    label = {"name": "shop", "options": {"image": "localhost/base:1"}, "number": "n"}
    ours = FACETS["container"].load(docker({"statecfg.container": json.dumps(label)}))
    assert ours["docker shop"] == {**stopped, "image": "localhost/base:1", "number": "n"}
    assert FACETS["container"].load(docker({"statecfg.container": "{"}))["docker shop"] == foreign
    assert FACETS["container_environment"].load(docker({})) == {"docker shop": {"A": "b c ", "B": "'q'"}}


def test_images_of_docker_are_loaded() -> None:
    assert FACETS["container_image"].load(docker({})) == {
        "docker": {"read": True},
        "docker localhost/base:1": {"present": True, "id": "061cf57f3b25", "digests": []},
        "docker 061cf57f3b25": {"names": ["localhost/base:1"], "number": None},
    }


def test_services_of_docker_are_loaded_from_labels() -> None:
    project = {"com.docker.compose.project": "shop", "com.docker.compose.service": "web"}
    labels = {**project, "com.docker.compose.config-hash": "a1"}
    assert FACETS["compose_service"].load(docker(labels)) == {
        "docker shop web": {
            "state": "stopped",
            "containers": ["shop"],
            "hashes": ["a1"],
            "images": {"localhost/base:1": "061cf57f3b25"},
            "directories": [""],
            "number": 1,
        }
    }
    assert FACETS["compose_service"].load(docker({**labels, "com.docker.compose.oneoff": "True"})) == {}


@pytest.mark.parametrize("command", ["container inspect c89ad37bd559", "image inspect sha256:061cf57f3b25"])
def test_an_engine_that_fails_is_not_one_without_services(command: str) -> None:
    """A container can be removed between the list and its description."""
    told = {"docker container inspect c89ad37bd559": Probe(0, (DOCKER_CONTAINER % "{}").encode())}
    probes = {**LISTS, **told, f"docker {command}": Probe(1, b"", b"no such container\n")}
    loaded = FACETS["compose_service"].load(MemoryMachine({"/usr/bin/docker": ""}, probes=probes))
    assert loaded == {"docker": {"unread": "no such container"}}
    world = MemoryMachine({}, {"compose_service": loaded})
    with pytest.raises(CheckError, match="the containers of docker can't be read: no such container"):
        compose_services.of(world, "docker", "shop")


def test_an_engine_that_fails_is_loaded_as_unread() -> None:
    """Recorded without a running service of docker."""
    text = b"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n"
    machine = MemoryMachine({"/usr/bin/docker": ""}, probes={"docker ps --all --quiet --no-trunc": Probe(1, b"", text)})
    assert FACETS["container"].load(machine) == {"docker": {"unread": text.decode().strip()}}
    assert FACETS["container"].load(MemoryMachine()) == {}
