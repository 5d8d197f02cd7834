"""Docker from its own repository: key, deb822 source, pins and packages; the daemon's settings, and who may use it.

`url` is where the repository is; its key is `files/docker.asc`.
"""

from __future__ import annotations

from typing import Any

from statecfg import Graph, HostContext, play, secret
from statecfg.resources import cron, directory, file, group, json_key, package, service, symlink, systemd_unit, user

OLD = ["docker.io", "docker-compose", "docker-doc", "podman-docker", "runc"]
NEEDED = ["ca-certificates", "curl"]
PACKAGES = ["docker-ce", "docker-ce-cli", "containerd.io", "docker-compose-plugin"]
SCRIPTS = {
    "docker-prune": "#!/bin/sh\nexec docker system prune --force --filter until=168h\n",
    "docker-health": "#!/bin/sh\nexec docker info --format '{{.ServerVersion}}'\n",
}


VARIABLES = {
    "url": "https://download.docker.com/linux/debian",
    "channel": "stable",
    "pin": "24.*",
    "users": ["deploy", "ci"],
    "data": "/srv/docker",
    "registry": "registry.test",
    "log_size": "10m",
}


@play(hosts="all", vars=VARIABLES)
def docker(host: HostContext) -> list[Graph]:
    """Declare Docker's package setup and what belongs to it."""
    old = [package(name, absent=True) for name in OLD]
    needed = [package(name) for name in NEEDED]
    keyrings = directory("/etc/apt/keyrings", mode="0755")
    key = file("/etc/apt/keyrings/docker.asc", source="docker.asc", mode="0644", requires=[keyrings, *needed])
    source = file("/etc/apt/sources.list.d/docker.sources", template="docker/docker.sources.j2", mode="0644",
                  requires=[key])  # fmt: skip
    former = file("/etc/apt/sources.list.d/docker.list", absent=True)
    pins = [
        file(f"/etc/apt/preferences.d/{name}", template="docker/pin.j2", vars={"package": name}, mode="0644")
        for name in ("docker-ce", "docker-ce-cli")
    ]
    packages = [package(name, update_cache=0, requires=[source, key, former, *pins, *old]) for name in PACKAGES]
    settings_directory = directory("/etc/docker", mode="0755")
    data = directory(host.vars.data, mode="0711")
    settings = [
        json_key("/etc/docker/daemon.json", key=key, value=value, create=True, mode="0644", provides=f"daemon {key}",
                 requires=[settings_directory, data])
        for key, value in _settings(host).items()
    ]  # fmt: skip
    dropin = systemd_unit("docker", drop_in="limits", requires=packages,
                          sections={"Service": {"LimitNOFILE": "infinity", "TasksMax": "infinity"}})  # fmt: skip
    members = group("docker", system=True)
    users = [_user(name, members) for name in host.vars.users]
    containerd = file("/etc/containerd/config.toml", template="docker/containerd.toml.j2", mode="0644",
                      requires=packages)  # fmt: skip
    running_containerd = service("containerd", running=True, enabled=True, restart_on=[containerd])
    socket = service("docker.socket", running=True, enabled=True, requires=[*packages, members])
    running = service("docker", running=True, enabled=True, requires=[socket, running_containerd],
                      restart_on=[*settings, dropin])  # fmt: skip
    login = file("/root/.docker/config.json", template="docker/config.json.j2",
                 vars={"auth": secret("registry-auth", env="CORPUS_REGISTRY_AUTH")}, mode="0600",
                 requires=[directory("/root/.docker", mode="0700")])  # fmt: skip
    scripts = [file(f"/usr/local/sbin/{name}", content=text, mode="0755") for name, text in SCRIPTS.items()]
    jobs = cron("docker", schedule="13 4 * * 0", command="/usr/local/sbin/docker-prune", requires=scripts)
    short = symlink("/usr/local/bin/dc", target="docker-compose", requires=packages)
    compose = file("/usr/local/bin/docker-compose", content='#!/bin/sh\nexec docker compose "$@"\n', mode="0755")
    return [running, login, jobs, short, compose, *users]


def _settings(host: HostContext) -> dict[str, Any]:
    """Return the keys of daemon.json that this playbook manages; others stay as they are."""
    return {
        "data-root": host.vars.data,
        "log-driver": "json-file",
        "log-opts": {"max-size": host.vars.log_size, "max-file": "3"},
        "live-restore": True,
    }


def _user(name: str, members: Graph) -> Graph:
    return user(name, groups=["docker"], shell="/bin/bash", create_home=True, requires=[members])
