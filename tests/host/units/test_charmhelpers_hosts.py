"""The charmhelpers package of PyPI in charms on two hosts over SSH: a database and a web site that uses it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import charmhelpers
import pytest
import yaml

from tests.host.units.fabric import Fabric, hooks
from tests.host.units.test_charmhelpers import PAGE, PROGRAM, RECORDS, values
from tests.lab import Host

# Python uses only what the charm contains: no environment variables and no installed packages.
BEGIN = f"""#!{Path(sys.executable).resolve()} -IS
import os, sys

sys.path.insert(0, os.path.join(os.environ["CHARM_DIR"], "lib"))
from charmhelpers.core import hookenv

hooks = hookenv.Hooks()
"""
END = """
try:
    hooks.execute(sys.argv)
except hookenv.UnregisteredHookError as problem:
    hookenv.log("nothing to do: %s" % problem)
"""
DB = """
@hooks.hook()
def install():
    hookenv.leader_set(k="v")


@hooks.hook("db-relation-joined")
def known():
    hookenv.relation_set(relation_settings={"host": "10.0.0.1", "private-address": "10.0.0.1"})


@hooks.hook("backend-relation-joined")
def publish():
    settings = {"host": hookenv.unit_get("private-address"), "user": hookenv.remote_service_name(), "password": "s e'c"}
    hookenv.relation_set(relation_settings=settings)
    hookenv.open_port(3306)


@hooks.hook("db-relation-changed")
def calls():
    if hookenv.relation_get("host") == "10.0.0.1" and hookenv.remote_unit() == "wordpress/0":
        exec(open("calls.py").read(), {})
"""
WEB = """
@hooks.hook("db-relation-joined", "cache-relation-joined")
def known():
    ready = hookenv.relation_type() == "cache" or hookenv.local_unit() == "wordpress/1"
    settings = {"host": "10.0.0.1" if ready else "not yet", "private-address": "10.0.0.1"}
    hookenv.relation_set(relation_settings=settings)


@hooks.hook("backend-relation-changed")
def use():
    found = hookenv.relation_get()
    if "password" not in found:
        return hookenv.log("waiting for %s" % hookenv.remote_unit())
    with open("/srv/%s.conf" % hookenv.local_unit().replace("/", "-"), "w") as conf:
        conf.write("{host}|{user}|{password}".format(**found))
    hookenv.status_set("active", "ready")


@hooks.hook("config-changed")
def configured():
    if hookenv.config("go") and hookenv.local_unit() == "wordpress/0":
        for relation in hookenv.relation_ids("db"):
            hookenv.relation_set(relation, host="10.0.0.1")
"""
HOOKS = {
    "mysql": (DB, ("install", "db-relation-joined", "db-relation-changed", "backend-relation-joined")),
    "wordpress": (WEB, ("config-changed", "db-relation-joined", "cache-relation-joined", "backend-relation-changed")),
}
METADATA: dict[str, Any] = {
    "mysql": {"provides": {"db": {"interface": "mysql"}, "backend": {"interface": "db"}}},
    "wordpress": {
        "requires": {"db": {"interface": "mysql"}, "cache": {"interface": "mysql"}, "backend": {"interface": "db"}}
    },
}
CONFIG = """
options:
  title: {type: string, default: My Title}
  skill-level: {type: int, default: 9001}
  outlook: {type: string}
"""
PLAY = """
- service: mysql
  hosts: light1
  charm: charms/mysql
- service: wordpress
  hosts: light1,light2
  charm: charms/wordpress
  schema: {go: {type: boolean}}
  settings: {go: GO}
- relations:
    - [wordpress:db, mysql:db]
    - [wordpress:cache, mysql:db]
    - [wordpress:backend, mysql:backend]
"""


def charm(fabric: Fabric, name: str) -> None:
    """Write a charm that contains charmhelpers and YAML, with its hooks as links to one program."""
    program, names = HOOKS[name]
    root = fabric.root / "charms" / name
    (root / "hooks").mkdir(parents=True)
    for package in (charmhelpers, yaml):
        (source,) = package.__path__
        compiled = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(source, root / "lib" / Path(source).name, ignore=compiled)
    (root / "metadata.yaml").write_text(yaml.safe_dump({"name": name, **METADATA[name]}, sort_keys=False))
    (root / "hooks/hooks.py").write_text(BEGIN + program + END)
    (root / "hooks/hooks.py").chmod(0o755)
    for hook in names:
        (root / "hooks" / hook).symlink_to("hooks.py")


@pytest.fixture(scope="module")
def fabric(pair: list[Host], tmp_path_factory: pytest.TempPathFactory) -> Fabric:
    made = Fabric(tmp_path_factory.mktemp("charms"), pair)
    inventory = yaml.safe_load((made.root / "inventory.yml").read_text())
    for host, address in (("light1", "10.0.0.9"), ("light2", "10.0.0.8")):
        inventory["hosts"][host]["vars"] = {"private_address": address, "public_address": address}
    (made.root / "inventory.yml").write_text(yaml.safe_dump(inventory))
    charm(made, "mysql")
    charm(made, "wordpress")
    (made.root / "charms/mysql/config.yaml").write_text(CONFIG)
    (made.root / "charms/mysql/calls.py").write_text(PROGRAM)
    (made.root / "charms/mysql/calls").write_text(json.dumps([record["call"] for record in RECORDS]))
    made.play(PLAY.replace("GO", "false"))
    return made


@pytest.fixture(scope="module")
def first(fabric: Fabric) -> dict[str, Any]:
    """Apply the playbook to empty hosts. Give the reports."""
    return fabric.apply()


@pytest.fixture(scope="module")
def returned(fabric: Fabric, first: dict[str, Any], pair: list[Host]) -> list[Any]:
    """Let the web site publish a setting that makes the database's hook run the calls. Give their results."""
    fabric.play(PLAY.replace("GO", "true"))
    assert "db-relation-changed wordpress/0" in hooks(fabric.apply()["light1"], "mysql/0")
    found: list[Any] = json.loads(pair[0].read("/var/lib/statecfg/projects/fabric/units/mysql-0/charm/returned"))
    return found


def test_the_web_site_uses_what_the_database_published(fabric: Fabric, first: dict[str, Any], pair: list[Host]) -> None:
    for number, host in enumerate(pair):
        assert host.read(f"/srv/wordpress-{number}.conf") == "10.0.0.9|wordpress|s e'c"
    assert "3306/tcp" in fabric("service", "show", "mysql/0", "--json").json()["ports"]


@pytest.mark.parametrize("number", range(len(RECORDS)), ids=lambda number: RECORDS[number]["call"])
def test_recorded_calls_return_the_recorded_values(number: int, returned: list[Any]) -> None:
    record = RECORDS[number]
    answer = returned[number]
    if record["call"] == "execution_environment()":
        assert values(answer) == values(record["returned"])
        return
    assert answer == record.get("on_hosts", record.get("here", record["returned"]))
    assert "on_hosts" not in record or f"\n| {record['why']} |" in PAGE.read_text()
