"""Images and containers of a real dockerd: they come true and are undone, and containers of others stay."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.graph.graph import Graph
from statecfg.resources import container, container_image
from tests import lab
from tests.host.resources.containers import podman_hosts
from tests.host.resources.text.test_text_edits import SECRET, Site, nodes
from tests.host.resources.truth_case import Case
from tests.host.resources.truth_runs import check_rows
from tests.lab import Host, debs, owner
from tests.lab.fixtures import or_skip

# Containers get no cgroups and no keyrings, which the host would share with this machine, and no networks.
RUNTIME = "/usr/local/bin/runtime"
CRUN = """\
#!/bin/sh
for word; do
    shift
    set -- "$@" "$word"
    [ "$word" != create ] || set -- "$@" --no-new-keyring
done
exec crun --cgroup-manager=disabled "$@"
"""
DAEMON = ["dockerd", "--storage-driver=vfs", "--bridge=none", "--data-root=/srv/docker"]
DAEMON += [
    "--iptables=false",
    "--ip6tables=false",
    "--ip-forward=false",
    f"--add-runtime=tests={RUNTIME}",
    "--default-runtime=tests",
]
ENV = 'env: {WORD: "{{ word }}", ODD: " a=\'b\' "}'


@pytest.fixture(scope="module")
def docker() -> Iterator[Host]:
    """Give a booted host with Debian's docker, whose files come from packages that this machine does not install."""
    with or_skip():
        owner.require_root_hosts()
        tree = debs.extracted(["docker.io"], owner.base() / "docker")
        host = lab.booted_host()
    try:
        subprocess.run(["cp", "-a", "--", f"{tree}/.", str(host.path("/"))], check=True)
        host.run(["rm", "-f", "/usr/local/bin/docker"])
        podman_hosts.allow_networks(host)
        host.write(RUNTIME, CRUN, mode=0o755)
        host.run(["systemd-run", "--quiet", "--unit=dockerd", *DAEMON])
        host.run(["sh", "-c", "until docker version >/dev/null 2>&1; do sleep 0.1; done"])
        host.run(["sh", "-c", podman_hosts.COPY, "sh", *podman_hosts.PROGRAMS])
        for name in ("localhost/shop:1", "localhost/shop:2", "localhost/saved:1"):
            create_image(host, name)
        host.run(["docker", "save", "--output", "/srv/saved.tar", "localhost/saved:1"])
        host.run(["docker", "rmi", "localhost/saved:1"])
        yield host
    finally:
        host.stop()


@pytest.fixture
def site(docker: Host, tmp_path: Path) -> Iterator[Site]:
    found = Site(docker, tmp_path, "/srv/site")
    yield found
    found.clean()


def create_image(host: Host, name: str) -> None:
    """Create an image that runs until it is stopped."""
    host.write("/srv/image/text", name)
    host.write("/srv/image/stay", podman_hosts.STAY)
    command = 'tar -C /srv/image -c . | docker import --change "$1" - "$2"'
    host.run(["sh", "-c", command, "sh", 'CMD ["/bin/sh", "/stay"]', name])


def inspect(host: Host, name: str, kind: str = "container") -> dict[str, Any]:
    """Return what docker tells about a container or image; {} if there is none."""
    told = host.run(["docker", kind, "inspect", name], check=False)
    found: list[dict[str, Any]] = json.loads(told.stdout)
    return found[0] if found else {}


def shop(*more: str) -> str:
    lines = ("engine: docker", "network: none", "stop_timeout: 2", *more)
    return "  - container: shop\n" + "".join(f"    {line}\n" for line in lines)


def test_a_container_is_created_changed_stopped_and_removed(site: Site) -> None:
    site.come_true(shop("image: localhost/shop:1", ENV, "restart: on-failure:3", "volumes: ['data:/data']"))
    first = inspect(site.host, "shop")
    assert first["State"]["Running"] and {f"WORD={SECRET}", "ODD= a='b' "} <= set(first["Config"]["Env"])
    assert SECRET not in str(first["Config"]["Labels"])
    assert first["HostConfig"]["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 3}
    (planned,) = site.come_true(shop("image: localhost/shop:2", ENV, "labels: {team: web}")).values()
    shown = {change["field"]: [change["before"], change["after"]] for change in planned["changes"]}
    assert shown["image"] == ["localhost/shop:1", "localhost/shop:2"] and shown["labels"] == [None, {"team": "web"}]
    second = inspect(site.host, "shop")
    assert second["Id"] != first["Id"] and second["Config"]["Labels"]["team"] == "web" and second["State"]["Running"]
    assert not inspect(site.host, "shop-statecfg-new")
    said = site.say("apply", shop("image: localhost/shop:2", ENV, "labels: {team: web}", "running: false"), "--json")
    assert SECRET not in said.out + said.err and not inspect(site.host, "shop")["State"]["Running"]
    site.say("destroy")
    assert not inspect(site.host, "shop") and inspect(site.host, "data", "volume")


def test_a_container_of_others_stays_or_is_replaced_and_comes_back(site: Site) -> None:
    site.host.run(["docker", "run", "-d", "--name", "shop", "--network", "none", "localhost/shop:2"])
    theirs = inspect(site.host, "shop")["Id"]
    failed = site.report("apply", shop("image: localhost/shop:1"), code=1)
    assert "statecfg did not create the container shop" in str(nodes(failed))
    site.come_true(shop("image: localhost/shop:1", "replace: true"))
    assert inspect(site.host, "shop")["Id"] != theirs
    site.say("destroy")
    assert inspect(site.host, "shop")["Id"] == theirs and inspect(site.host, "shop")["State"]["Running"]
    site.host.run(["docker", "rm", "-f", "shop"])


def test_an_image_is_loaded_or_pulled_and_removed(site: Site) -> None:
    both = "  - container_image: localhost/saved:1\n    engine: docker\n    archive: /srv/saved.tar\n"
    both += shop("image: localhost/saved:1", 'requires: ["container_image:localhost/saved:1"]')
    site.come_true(both)
    site.say("destroy")
    assert not inspect(site.host, "shop") and not inspect(site.host, "localhost/saved:1", "image")
    image = podman_hosts.serve(site.host, "localhost/shop:1", "localhost/shop:2", source="docker-daemon")
    entry = f"  - container_image: {image}:1\n    engine: docker\n"
    site.come_true(entry)
    second = podman_hosts.digest(site.host, "2")
    (planned,) = site.come_true(entry + f"    digest: {second}\n").values()
    assert [change["after"] for change in planned["changes"] if change["field"] == "digests"] == [[second]]
    assert inspect(site.host, f"{image}:1", "image")["Id"] == inspect(site.host, "localhost/shop:2", "image")["Id"]
    site.say("destroy")
    assert not inspect(site.host, f"{image}:1", "image") and inspect(site.host, "localhost/shop:2", "image")
    (node,) = nodes(site.report("apply", entry.replace(":1\n", ":9\n"), code=1)).values()
    assert "404" in str(node)


def test_a_daemon_that_is_down_is_an_error_and_removes_nothing(site: Site) -> None:
    site.say("apply", shop("image: localhost/shop:1"))
    site.host.run(["systemctl", "kill", "--signal=STOP", "dockerd"])
    site.host.run(["mv", "/run/docker.sock", "/run/docker.moved"])
    try:
        failed = site.report("apply", shop("image: localhost/shop:1"), code=1)
        assert "ers of docker can" in str(nodes(failed))
        site.say("destroy", code=None)
    finally:
        site.host.run(["mv", "/run/docker.moved", "/run/docker.sock"])
        site.host.run(["systemctl", "kill", "--signal=CONT", "dockerd"])
    assert inspect(site.host, "shop")["State"]["Running"]


def _declared(root: str, requires: list[Graph]) -> list[Graph]:
    image = container_image("localhost/truth:2", archive=f"{root}.tar", engine="docker", requires=requires)
    gone = container_image("localhost/gone:1", engine="docker", absent=True, requires=requires)
    options: Any = {"image": "localhost/truth:2", "network": "none", "stop_timeout": 2, "engine": "docker"}
    return [
        image,
        gone,
        container("truth", env={"A": "1"}, labels={"team": "web"}, restart="always", requires=[image], **options),
        container("truth-stopped", running=False, requires=[image], **options),
        container("truth-gone", engine="docker", absent=True, requires=requires),
    ]


def _bare(host: Host, root: str) -> None:
    create_image(host, "localhost/truth:2")
    host.run(["docker", "save", "--output", f"{root}.tar", "localhost/truth:2"])
    host.run(["docker", "rmi", "localhost/truth:2"])


def _drift(host: Host, root: str) -> None:
    host.run(["docker", "rm", "-f", "truth", "truth-stopped"])
    host.run(["docker", "rmi", "localhost/truth:2"])
    host.run(["docker", "tag", "localhost/shop:1", "localhost/gone:1"])


def _done(host: Host, root: str) -> None:
    host.run(["docker", "rm", "-f", "truth", "truth-stopped"])
    host.run(["docker", "rmi", "localhost/truth:2"])


def test_plans_of_containers_predict_their_changes(site: Site) -> None:
    case = Case("docker", _declared, _drift, _bare, done=_done)
    rows = [("container", "container (docker)"), ("container_image", "container_image (docker)")]
    check_rows(site.host, case, rows)
