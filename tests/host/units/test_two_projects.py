"""Two projects or two stores with the same service on one host, and hosts that version 0.3.0 managed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.host import upgrades
from tests.host.units.fabric import Fabric, hooks
from tests.lab import Host

STATE = "/var/lib/statecfg"
PLAY = """
- service: web
  hosts: light1
  charm: charms/web
"""


pytestmark = pytest.mark.usefixtures("bare_pair")


def project(base: Path, pair: list[Host], name: str) -> Fabric:
    """Return a project whose service `web` writes the project's name to files."""
    made = Fabric(base, pair)
    (made.root / "statecfg.toml").write_text(f'name = "{name}"\nssh_config = "ssh_config"\n')
    stop = 'cat "$CHARM_DIR/whose" >> /srv/stopped\n'
    made.charm("web", {"install": f'echo {name} > "$CHARM_DIR/whose"\n', "stop": stop})
    made.play(PLAY)
    return made


def test_units_of_two_projects_in_one_store_stay_separate(tmp_path: Path, pair: list[Host]) -> None:
    shop, blog = (project(tmp_path / name, pair, name) for name in ("shop", "blog"))
    blog.store = shop.store
    for each in (shop, blog):
        assert hooks(each.apply()["light1"], "web/0") == ["install", "config-changed", "start"]
    host = pair[0]
    for name in ("shop", "blog"):
        assert host.path(f"{STATE}/projects/{name}/units/web-0/charm/whose").read_text() == f"{name}\n"
    for each in (shop, blog):
        assert each("plan", "site.yml", "--detailed-exitcode").code == 0
    blog("destroy", "site.yml", "--yes")
    assert host.path("/srv/stopped").read_text() == "blog\n"
    assert not host.path(f"{STATE}/projects/blog").exists()
    assert host.path(f"{STATE}/projects/shop/units/web-0/charm/whose").exists()
    shop("destroy", "site.yml", "--yes")
    assert host.path("/srv/stopped").read_text() == "blog\nshop\n"


def test_a_second_store_of_the_project_is_refused(tmp_path: Path, pair: list[Host]) -> None:
    shop = project(tmp_path, pair, "shop")
    shop.apply()
    first, shop.store = shop.store, tmp_path / "other.db"
    owner = f"{STATE}/projects/shop/owner"
    for words in (["plan", "site.yml"], ["apply", "site.yml", "--yes"], ["destroy", "site.yml", "--yes"]):
        ran = shop(*words, code=5)
        said = " ".join((ran.out + ran.err).split())
        assert "this host has units of the project shop that belong to the store" in said
        assert str(first) in said and f"delete {owner}" in said
    assert shop("service", "list", "--json").json()["services"] == []
    assert pair[0].path(f"{STATE}/projects/shop/units/web-0/charm/whose").exists()
    pair[0].path(owner).unlink()
    shop.apply()
    assert json.loads(pair[0].path(owner).read_text())["store"].startswith(str(shop.store))
    shop.store = first
    shop("plan", "site.yml", code=5)


def test_units_of_version_0_3_0_keep_their_numbers(tmp_path: Path, pair: list[Host]) -> None:
    for host in pair:
        upgrades.state_of(host.name, tmp_path / host.name)
        host.run(["mkdir", "-p", "/var/lib"])
        shutil.copytree(tmp_path / host.name, host.path(STATE), symlinks=True)
    shop = Fabric(tmp_path / "shop", pair)
    (shop.root / "statecfg.toml").write_text('name = "shop"\nssh_config = "ssh_config"\n')
    upgrades.store(shop.store)
    seen = 'echo "$JUJU_RELATION_ID" >> "$CHARM_DIR/seen"\n'
    for name in ("a", "b", "c"):
        change = {"x-relation-changed": seen, "x-relation-joined": seen + "relation-set of=$JUJU_UNIT_NAME\n"}
        shop.charm(name, change, ["x"])
    shop.play(upgrades.SHOP)
    done = shop.apply()
    assert "install" not in hooks(done["light1"], "a/0")
    charm = pair[0].path(f"{STATE}/projects/shop/units/a-0/charm")
    assert {"x:2", "x:3"} <= set((charm / "seen").read_text().split())
    assert not pair[0].path(f"{STATE}/units/a-0").exists()
    assert pair[0].path(f"{STATE}/units/z-0").exists(), "the other project keeps its unit until its next apply"
    assert all(unit["state"] == "started" for host in done.values() for unit in host["units"])
    assert set(pair[0].path(f"{STATE}/projects/shop/units/a-1/charm/seen").read_text().split()) == {"x:2", "x:3"}
    shop("destroy", "site.yml", "--yes")
    assert not pair[0].path(f"{STATE}/projects/shop").exists()
