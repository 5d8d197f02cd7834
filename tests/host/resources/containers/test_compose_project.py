"""Compose projects with podman-compose: they come true and are undone, and values of variables are never shown."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.resources.containers import podman_hosts
from tests.host.resources.containers.podman_hosts import exists, inspect
from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host

VALUE = "value-in-the-env-file"  # nothing tells statecfg that it is a secret
SERVICES = """\
services:
  web:
    image: localhost/shop:1
    environment: {WORD: "${WORD}"}
    depends_on: [db]
  db:
    image: localhost/shop:1
"""


@pytest.fixture(scope="module")
def podman(booted: Host) -> None:
    if not shutil.which("podman-compose"):
        pytest.skip("not run on this machine: there is no podman-compose (Debian: podman-compose)")
    podman_hosts.prepare(booted, "localhost/shop:1", "localhost/shop:2")
    podman_hosts.allow_networks(booted)


@pytest.fixture
def site(booted: Host, podman: None, tmp_path: Path) -> Iterator[Site]:
    found = Site(booted, tmp_path, "/srv/shop")
    found.write("compose.yaml", SERVICES)
    found.write(".env", f"WORD={VALUE}\n")
    yield found
    found.clean()


def project(*more: str) -> str:
    lines = "".join(f"    {line}\n" for line in ("directory: /srv/shop", "stop_timeout: 2", *more))
    return f"  - compose_project: shop\n{lines}"


def running(site: Site, service: str) -> bool:
    name = f"shop_{service}_1"
    return exists(site.host, name) and bool(inspect(site.host, name)["State"]["Running"])


def changes(planned: dict[str, Any]) -> dict[str, Any]:
    (node,) = planned.values()
    return {f"{change['object']} {change['field']}": change["after"] for change in node["changes"]}


def test_a_project_comes_true_and_is_removed(site: Site) -> None:
    planned = site.come_true(project())
    assert changes(planned)["compose_service podman shop web state"] == "running"
    assert running(site, "web") and running(site, "db")
    assert f"WORD={VALUE}" in inspect(site.host, "shop_web_1")["Config"]["Env"]
    site.say("destroy")
    assert not exists(site.host, "shop_web_1") and not exists(site.host, "shop_db_1")


def test_only_a_changed_service_is_created_anew_and_no_value_is_shown(site: Site) -> None:
    said = site.say("apply", project(), "--json")
    before = {name: inspect(site.host, f"shop_{name}_1")["Id"] for name in ("web", "db")}
    site.write(".env", f"WORD={VALUE}-changed\n")
    planned = site.report("plan", project())
    assert changes(nodes(planned)) == {"compose_service podman shop web definition": "current"}
    again = site.say("apply", project(), "--json")
    assert VALUE not in said.out + said.err + again.out + again.err + str(planned)
    after = {name: inspect(site.host, f"shop_{name}_1")["Id"] for name in ("web", "db")}
    assert after["db"] == before["db"] and after["web"] != before["web"]
    assert site.report("plan", project())["summary"] == {"unchanged": 1}


def test_stopped_services_orphans_and_chosen_services(site: Site) -> None:
    site.say("apply", project("services: [web]"))
    assert running(site, "db")  # web depends on it
    site.host.run(["podman", "kill", "shop_web_1"])
    planned = site.come_true(project())
    assert changes(planned) == {"compose_service podman shop web state": "running"}
    site.write("compose.yaml", SERVICES.replace("    depends_on: [db]\n", "").partition("  db:")[0])
    site.come_true(project("remove_orphans: true"))
    assert not exists(site.host, "shop_db_1") and running(site, "web")
    site.say("apply", project("running: false"))
    assert exists(site.host, "shop_web_1") and not running(site, "web")
    site.come_true(project("absent: true"))
    assert not exists(site.host, "shop_web_1")


def test_a_project_of_others_stays(site: Site) -> None:
    compose = ["podman-compose", "-p", "shop", "-f", "/srv/shop/compose.yaml"]
    site.host.run([*compose, "up", "-d"])
    for more in ((), ("absent: true",)):
        failed = site.report("apply", project(*more), code=1)
        assert "statecfg did not create the containers of db, web in the project shop" in str(nodes(failed))
    assert running(site, "web")
    site.say("apply", project("replace: true"))
    said = site.report("destroy")
    left = str([node.get("leaves") for layer in said["removals"] for node in layer])
    assert "the compose project shop stays: it existed before" in left and running(site, "web")
    site.host.run([*compose, "down", "-t", "1"])


def test_invalid_files_and_unknown_services_are_errors(site: Site) -> None:
    failed = site.report("plan", project("services: [wbe]"), code=1)
    assert "the project has no service wbe; did you mean `web`?" in str(nodes(failed))
    site.write("compose.yaml", "services: [\n")
    failed = site.report("plan", project(), code=1)
    assert "the files of the compose project are not valid" in str(nodes(failed))
    site.host.path("/srv/shop/compose.yaml").unlink()
    failed = site.report("plan", project(), code=1)
    assert "/srv/shop/compose.yaml does not exist" in str(nodes(failed))


def test_a_secret_never_becomes_an_argument_of_podman(site: Site) -> None:
    """Other users of the host can read arguments."""
    write = '  - file: /srv/shop/.env\n    mode: "0600"\n    content: "WORD={{ word }}"\n'
    failed = nodes(site.report("apply", write + project(), code=1))["compose_project:shop"]
    assert failed["outcome"] == "failed"
    assert "podman-compose would give podman the secret STATECFG_TEST_WORD as an argument" in failed["reason"]
    assert not exists(site.host, "shop_web_1")


def test_an_image_whose_name_has_moved_and_a_job(site: Site) -> None:
    job = '  job:\n    image: localhost/shop:2\n    command: ["/bin/sh", "-c", "exit 0"]\n'
    site.write("compose.yaml", SERVICES + job)
    site.say("apply", project("jobs: [job]"))
    site.host.run(["podman", "wait", "shop_job_1"])
    assert site.report("plan", project("jobs: [job]"))["summary"] == {"unchanged": 1}
    assert changes(nodes(site.report("plan", project()))) == {"compose_service podman shop job state": "running"}
    before = inspect(site.host, "localhost/shop:1", "image")["Id"]
    try:
        podman_hosts.create_image(site.host, "localhost/shop:1", "another")
        planned = site.come_true(project("jobs: [job]"))
        assert set(changes(planned)) == {f"compose_service podman shop {name} definition" for name in ("db", "web")}
        assert inspect(site.host, "shop_web_1")["Image"] != before
    finally:
        site.host.run(["podman", "tag", before, "localhost/shop:1"])


@pytest.mark.parametrize("path", ["", "/compose.yaml", "/.env"])
def test_root_obeys_no_files_of_other_users(site: Site, path: str) -> None:
    """Whoever writes these files has the rights of root: containers can mount the whole host."""
    site.host.run(["chown", "nobody", f"/srv/shop{path}"])
    (found,) = nodes(site.report("apply", project(), code=1)).values()
    site.host.run(["chown", "root", f"/srv/shop{path}"])
    assert f"nobody can change /srv/shop{path}, and root must not run podman-compose" in found["reason"]
