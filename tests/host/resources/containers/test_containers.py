"""Images and containers of podman: they come true and are undone, and containers of others stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.containers import podman_hosts
from tests.host.resources.containers.podman_hosts import exists, inspect
from tests.host.resources.text.test_text_edits import SECRET, Site, nodes
from tests.lab import Host


@pytest.fixture(scope="module")
def podman(booted: Host) -> None:
    podman_hosts.prepare(booted, "localhost/shop:1", "localhost/shop:2", "localhost/saved:1")
    booted.run(["podman", "save", "--quiet", "--output", "/srv/saved.tar", "localhost/saved:1"])
    booted.run(["podman", "rmi", "localhost/saved:1"])


@pytest.fixture
def site(booted: Host, podman: None, tmp_path: Path) -> Iterator[Site]:
    found = Site(booted, tmp_path, "/srv/site")
    yield found
    found.clean()


def shop(*more: str) -> str:
    """Return a container with these additional attributes."""
    lines = "".join(f"    {line}\n" for line in ("network: none", "stop_timeout: 2", *more))
    return f"  - container: shop\n{lines}"


ENV = 'env: {WORD: "{{ word }}", PORT: "8080", ODD: " a=\'b\' "}'


def test_a_container_is_created_changed_and_removed(site: Site) -> None:
    site.come_true(shop("image: localhost/shop:1", ENV))
    first = inspect(site.host, "shop")
    assert first["State"]["Running"]
    assert {f"WORD={SECRET}", "PORT=8080", "ODD= a='b' "} <= set(first["Config"]["Env"])
    assert SECRET not in str([first["Config"]["Labels"], first["Config"]["CreateCommand"]])
    (planned,) = site.come_true(shop("image: localhost/shop:2", ENV, "labels: {team: web}")).values()
    shown = {change["field"]: [change["before"], change["after"]] for change in planned["changes"]}
    assert shown["image"] == ["localhost/shop:1", "localhost/shop:2"] and shown["labels"] == [None, {"team": "web"}]
    second = inspect(site.host, "shop")
    assert second["Id"] != first["Id"] and second["Config"]["Labels"]["team"] == "web" and second["State"]["Running"]
    assert not exists(site.host, "shop-statecfg-new")
    site.say("destroy")
    assert not exists(site.host, "shop") and exists(site.host, "localhost/shop:2", "image")


def test_no_report_and_no_argument_contains_the_secret(site: Site) -> None:
    said = site.say("apply", shop("image: localhost/shop:1", ENV), "--json")
    assert SECRET not in said.out + said.err
    changed = site.report("plan", shop("image: localhost/shop:1", ENV.replace("{{ word }}", "{{ word }}!")))
    (node,) = nodes(changed).values()
    assert node["actions"][0]["args"]["new_values"] == ["WORD"] and SECRET not in str(changed)


def test_a_container_is_stopped_and_started(site: Site) -> None:
    site.come_true(shop("image: localhost/shop:1", "running: false"))
    assert inspect(site.host, "shop")["State"]["Status"] == "created"
    site.say("apply", shop("image: localhost/shop:1"))
    before = inspect(site.host, "shop")
    site.host.run(["podman", "kill", "shop"])
    (planned,) = site.come_true(shop("image: localhost/shop:1")).values()
    assert [action["op"] for action in planned["actions"]] == ["start"]
    assert inspect(site.host, "shop")["Id"] == before["Id"]
    site.say("apply", shop("image: localhost/shop:1", "running: false"))
    assert not inspect(site.host, "shop")["State"]["Running"]


def test_ports_volumes_and_a_restart_after_a_change(site: Site) -> None:
    podman_hosts.allow_networks(site.host)
    conf = "  - file: /srv/site/conf\n    content: {}\n"
    web = (
        "  - container: shop\n    image: localhost/shop:1\n    ports: ['127.0.0.1:8085:80', '8086:81/udp']\n"
        "    volumes: ['/srv/site:/conf:ro', 'data:/data']\n    restart: on-failure:3\n    user: '1000:1000'\n"
        "    stop_timeout: 2\n    restart_on: ['file:/srv/site/conf']\n"
    )
    site.host.run(["mkdir", "-p", "/srv/site"])
    site.come_true(conf.format("one") + web)
    before = inspect(site.host, "shop")
    assert before["HostConfig"]["PortBindings"]["80/tcp"] == [{"HostIp": "127.0.0.1", "HostPort": "8085"}]
    assert before["HostConfig"]["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 3}
    assert site.host.run(["podman", "exec", "shop", "/bin/cat", "/conf/conf"]).stdout == "one"
    planned = site.come_true(conf.format("two") + web)
    assert [action["op"] for action in planned["container:shop"]["actions"]] == ["restart"]
    after = inspect(site.host, "shop")
    assert after["Id"] == before["Id"] and after["State"]["StartedAt"] != before["State"]["StartedAt"]
    site.say("destroy")
    assert exists(site.host, "data", "volume") and not exists(site.host, "shop")


def test_a_container_of_others_stays_or_is_replaced_and_comes_back(site: Site) -> None:
    site.host.run(["podman", "run", "-d", "--name", "shop", "--network", "none", "localhost/shop:2"])
    theirs = inspect(site.host, "shop")["Id"]
    for attributes in (["image: localhost/shop:1"], ["absent: true"]):
        lines = "".join(f"    {line}\n" for line in attributes)
        failed = site.report("apply", f"  - container: shop\n{lines}", code=1)
        assert "statecfg did not create the container shop" in str(nodes(failed))
    site.come_true(shop("image: localhost/shop:1", "replace: true"))
    assert inspect(site.host, "shop")["Id"] != theirs
    assert not inspect(site.host, "shop-before-statecfg")["State"]["Running"]
    site.say("destroy")
    assert inspect(site.host, "shop")["Id"] == theirs and inspect(site.host, "shop")["State"]["Running"]
    site.host.run(["podman", "rm", "-f", "-t", "1", "shop"])


def test_a_container_that_others_created_meanwhile_stays(site: Site) -> None:
    site.say("apply", shop("image: localhost/shop:1"))
    site.host.run(["podman", "rm", "-f", "-t", "1", "shop"])
    site.host.run(["podman", "run", "-d", "--name", "shop", "--network", "none", "localhost/shop:2"])
    said = site.report("destroy")
    left = str([node.get("leaves") for layer in said["removals"] for node in layer])
    assert "the container shop stays: others created it" in left and exists(site.host, "shop")
    site.host.run(["podman", "rm", "-f", "-t", "1", "shop"])


def test_containers_of_an_image_that_was_made_from_a_container(site: Site) -> None:
    """Such an image has the labels of the container. Its containers are not taken for ours, nor changed in each run."""
    site.say("apply", shop("image: localhost/shop:1", "labels: {team: web}"))
    site.host.run(["podman", "commit", "--quiet", "shop", "localhost/shop:snap"])
    site.say("apply", shop("image: localhost/shop:snap"))
    assert site.report("plan")["summary"] == {"unchanged": 1}
    site.host.run(["podman", "rm", "-f", "-t", "1", "shop"])
    site.host.run(["podman", "run", "-d", "--name", "shop", "--network", "none", "localhost/shop:snap"])
    failed = site.report("plan", shop("image: localhost/shop:snap"), code=1)
    assert "statecfg did not create the container shop" in str(nodes(failed))
    site.host.run(["podman", "rm", "-f", "-t", "1", "shop"])


def test_a_container_with_wrong_options_leaves_the_former_one_running(site: Site) -> None:
    site.say("apply", shop("image: localhost/shop:1"))
    before = inspect(site.host, "shop")["Id"]
    (node,) = nodes(
        site.report("apply", shop("image: localhost/shop:1", "arguments: [--memory=many]"), code=1)
    ).values()
    assert "memory" in str(node)
    now = inspect(site.host, "shop")
    assert (now["Id"], now["State"]["Running"]) == (before, True)


def test_an_image_is_loaded_for_a_container_and_both_are_removed(site: Site) -> None:
    image = "  - container_image: localhost/saved:1\n    archive: /srv/saved.tar\n"
    both = image + shop("image: localhost/saved:1", 'requires: ["container_image:localhost/saved:1"]')
    site.come_true(both)
    assert inspect(site.host, "shop")["ImageName"] == "localhost/saved:1"
    site.say("destroy")
    assert not exists(site.host, "shop") and not exists(site.host, "localhost/saved:1", "image")


def test_a_new_image_with_the_same_name_creates_the_container_anew(site: Site) -> None:
    podman_hosts.create_image(site.host, "localhost/moving:1", "old")
    site.say("apply", shop("image: localhost/moving:1"))
    podman_hosts.create_image(site.host, "localhost/moving:1", "new")
    (planned,) = site.come_true(shop("image: localhost/moving:1")).values()
    assert {change["field"] for change in planned["changes"]} == {"image_id"}
    assert site.host.run(["podman", "exec", "shop", "/bin/cat", "/text"]).stdout == "new"


def test_an_image_is_pulled_by_name_and_by_digest(site: Site) -> None:
    image = podman_hosts.serve(site.host, "localhost/shop:1", "localhost/shop:2")
    entry = f"  - container_image: {image}:1\n    tls_verify: false\n"
    site.come_true(entry)
    first = inspect(site.host, f"{image}:1", "image")
    assert first["Id"] == inspect(site.host, "localhost/shop:1", "image")["Id"]
    second = podman_hosts.digest(site.host, "2")
    (planned,) = site.come_true(entry + f"    digest: {second}\n").values()
    assert [change["after"] for change in planned["changes"] if change["field"] == "digests"] == [[second]]
    now = inspect(site.host, f"{image}:1", "image")
    assert now["Id"] == inspect(site.host, "localhost/shop:2", "image")["Id"]
    site.say("destroy")
    assert not exists(site.host, f"{image}:1", "image") and exists(site.host, "localhost/shop:2", "image")
    (node,) = nodes(site.report("apply", entry.replace(":1", ":9"), code=1)).values()
    assert "manifest" in str(node)


def test_an_image_that_a_container_uses_stays(site: Site) -> None:
    image = "  - container_image: localhost/saved:1\n    archive: /srv/saved.tar\n"
    site.say("apply", image)
    site.host.run(["podman", "create", "--name", "user", "--network", "none", "localhost/saved:1"])
    said = site.report("destroy")
    left = str([node.get("leaves") for layer in said["removals"] for node in layer])
    assert "the image localhost/saved:1 stays: used by podman user" in left
    site.host.run(["podman", "rm", "user"])
    site.host.run(["podman", "rmi", "localhost/saved:1"])


def test_a_broken_engine_is_an_error_and_removes_nothing(site: Site) -> None:
    site.say("apply", shop("image: localhost/shop:1"))
    site.host.write("/etc/containers/storage.conf", "[storage\n")
    try:
        failed = site.report("apply", shop("image: localhost/shop:1"), code=1)
        assert "ers of podman can" in str(nodes(failed))
        site.say("destroy", code=None)
    finally:
        site.host.write("/etc/containers/storage.conf", podman_hosts.STORAGE)
    assert inspect(site.host, "shop")["State"]["Running"]
