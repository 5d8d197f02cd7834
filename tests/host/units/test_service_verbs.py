"""`statecfg service` as users run it, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from statecfg.cli import main
from statecfg.store import opened, services
from tests.host.command import Ran, statecfg
from tests.host.store.running import Failed, Program, commit, declared, deploy, next_of, related, run_hooks, sets, units

Run = Callable[..., Ran]
INVENTORY = "hosts: {h1: , h2: , h3: }\n"
LATER = "The next `statecfg apply playbooks/web.yml` makes this change."
SCHEMA = {
    "title": {"type": "string", "default": "My Title"},
    "size": {"type": "int"},
    "rate": {"type": "float"},
    "open": {"type": "boolean", "default": False},
    "key": {"type": "secret"},
}

ENDS = {"db": ("provides", "sql"), "ring": ("peers", "ring"), "log": ("requires", "log")}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a project with two running services. Tests undo their changes to it."""
    root = tmp_path_factory.mktemp("verbs") / "shop"
    root.mkdir()
    (root / "inventory.yml").write_text(INVENTORY)
    with opened(url=str(root / "store.db")) as store:
        parts = declared("db", "h1", schema=SCHEMA, secrets={"key": "Hunter-2"}, endpoints=ENDS), declared("web", "h2")
        deploy(store, *parts, related("web:db", "db:db"))
        run_hooks(store, {"db db-relation-joined": lambda step: sets(step, user="ann", password="pw-1")})
        services.log(
            store, "shop", [(1.0, "db/0", "install", 20, "hello"), (2.0, "web/0", "sta\x1brt", 40, "\x1b[31m!\n2")]
        )
        with store.transaction() as connection:
            services.port_in(connection, units_of(store, connection, "db/0"), True, "5432/tcp")
            services.status_in(connection, units_of(store, connection, "db/0"), "active", "rea\x1bdy")
    return root


def units_of(store: object, connection: object, name: str) -> int:
    found = services.units_in(connection, "shop")
    return next(each.id for each in found if each.name == name)


@pytest.fixture
def run(shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Give a function that runs `statecfg service` in that project, inside this process to save time."""
    monkeypatch.chdir(shop)
    monkeypatch.setenv("STATECFG_STORE", str(shop / "store.db"))

    def made(*arguments: str, code: int = 0) -> Ran:
        found = main.status(["service", *arguments])
        said = capsys.readouterr()
        assert found == code, f"exit code {found}\n{said.out}\n{said.err}"
        return Ran(found, said.out, said.err)

    return made


def test_a_new_project_has_no_services(tmp_path: Path) -> None:
    (tmp_path / "inventory.yml").write_text(INVENTORY)
    where = {"cwd": tmp_path, "STATECFG_STORE": str(tmp_path / "store.db")}
    shown = statecfg("service", "list", **where)
    assert shown.out == "0 services, 0 units, 0 relations\n"
    refused = statecfg("service", "show", "db", code=5, **where)
    assert "SC0750" in refused.err and "apply a playbook that declares services" in refused.err


def test_list_shows_services_units_and_relations(run: Run) -> None:
    assert run("list").out.splitlines() == [
        "UNIT      STATE    HOST  STATUS",
        "db  shop/playbooks/web.yml",
        "  db/0*   started  h1    active: rea\\x1bdy",
        "web  shop/playbooks/web.yml",
        "  web/0*  started  h2",
        "db:db – web:db  by shop/playbooks/web.yml",
        "2 services, 2 units, 1 relation",
    ]
    found = run("list", "--json").json()
    assert [each["name"] for each in found["services"]] == ["db", "web"]
    unit = found["services"][0]["units"][0]
    assert (unit["name"], unit["state"], unit["host"], unit["ports"]) == ("db/0", "started", "h1", ["5432/tcp"])
    assert found["services"][0]["relations"] == [
        {"number": 0, "ends": ["db:db", "web:db"], "playbook": "shop/playbooks/web.yml"}
        | {"dying": False, "unsettled": []}
    ]


def test_show_prints_a_unit_and_masks_its_passwords(run: Run) -> None:
    shown = run("show", "db/0").out
    assert "5432/tcp" in shown and "active: rea\\x1bdy" in shown and "db:0  web/0" in shown and "ann" not in shown
    shown = run("show", "db/0", "--settings").out
    assert "ann" in shown and "********" in shown and "pw-1" not in shown
    found = run("show", "db/0", "--settings", "--json").json()
    settings = {"password": "********", "private-address": "10.0.0.h1", "user": "ann"}
    assert found["relations"] == [
        {"id": "db:0", "members": ["web/0"], "dying": False, "error": "", "settings": settings}
    ]
    assert "pw-1" in run("show", "db/0", "--settings", "--reveal").out


def test_settings_can_be_shown_set_and_reset(run: Run) -> None:
    default = {"key": "********", "open": False, "rate": None, "size": None, "title": "My Title"}
    assert run("get", "db", "--json").json()["settings"] == default
    said = run("set", "db", "title=Blog", "size=3", "rate=2", "open=true").out
    assert said == f"db: title, size, rate, open set. {LATER}\n"
    assert run("get", "db", "title").out == "Blog\n"
    assert run("get", "db", "rate", "--json").json() == {"format": 1, "settings": {"rate": 2.0}}
    shown = run("show", "db").out
    assert "Blog  (by hand)" in shown and "Hunter" not in shown and "********" in shown
    run("set", "db", "title=", "size=", "rate=", "open=")
    assert run("get", "db", "--json").json()["settings"] == default


def test_set_reports_all_invalid_settings_at_once(run: Run) -> None:
    words = ["titel=x", "size=big", "size=1.5", "rate=nan", "open=yes", "key=pw", "title", f"size={2**70}"]
    refused = run("set", "db", *words, code=5)
    assert refused.err.count("SC0708") == 1 and "did you mean `title`?" in refused.err
    assert refused.err.count("SC0709") == 7
    for help in ("a whole number", "a number", "true or false", "with !secret", "write title=VALUE"):
        assert help in refused.err
    assert run("get", "db", "size").out == "\n"
    refused = run("get", "db", "titel", code=5)
    assert "SC0708" in refused.err and "did you mean `title`?" in refused.err


def test_unknown_names_get_a_suggestion(run: Run) -> None:
    for words, code, help in (
        (("show", "bd"), "SC0750", "did you mean `db`?"),
        (("show", "db/1"), "SC0752", "did you mean `db/0`"),
        (("remove-unit", "wbe/0"), "SC0752", "did you mean `web/0`"),
        (("resolved", "db/7"), "SC0752", "`db/0`"),
        (("add-unit", "db", "--host", "h4"), "SC0404", "h1"),
        (("relate", "web", "wbe:db"), "SC0711", "write SERVICE:RELATION"),
        (("relate", "web:db", "wbe:db"), "SC0750", "did you mean `web`?"),
        (("relate", "db:one", "db:two"), "SC0711", "write one end: db:one"),
        (("unrelate", "web:bd", "db:db"), "SC0753", "did you mean `db:db web:db`?"),
        (("set", "bd", "a=1"), "SC0750", "did you mean `db`?"),
        (("log", "bd/0"), "SC0750", "did you mean `db`?"),
        (("log", "db/7"), "SC0752", "did you mean `db/0`?"),
        (("log", "db/x"), "SC0752", "did you mean `db/0`?"),
        (("relate", "web:db", "db:bd"), "SC0713", "did you mean `db`?"),
        (("relate", "db:rign"), "SC0713", "did you mean `ring`?"),
        (("relate", "db:log"), "SC0714", "one provides, the other requires"),
    ):
        refused = run(*words, code=5)
        assert code in refused.err and help in refused.err, (words, refused.err)
    found = run("show", "bd", "--json", code=5).json()
    assert [each["code"] for each in found["problems"]] == ["SC0750"]


def test_units_and_relations_can_be_added_and_removed_by_hand(run: Run, shop: Path) -> None:
    assert run("add-unit", "db", "--host", "h3").out == f"db/1: a new unit on h3. {LATER}\n"
    assert run("remove-unit", "db/1").out == f"db/1: will be stopped and removed. {LATER}\n"
    assert "  db/1    new, dying  h3" in run("list").out.splitlines()
    assert run("relate", "db:ring").out == f"db:ring: related. {LATER}\n"
    assert run("relate", "db:ring").out == "db:ring: related before\n"
    assert "db:ring (peers)  by hand" in run("list").out
    assert run("unrelate", "db:ring").out == f"db:ring: will be removed. {LATER}\n"
    with opened(url=str(shop / "store.db")) as store:
        run_hooks(store)
        assert list(units(store)) == ["db/0", "web/0"]


def test_resolved_marks_a_failed_hook_as_done(run: Run, shop: Path) -> None:
    fails: Program = failing
    with opened(url=str(shop / "store.db")) as store:
        services.set_settings(store, "shop", "db", {"title": "x"})
        run_hooks(store, {"db config-changed": fails})
    assert "config-changed failed" in run("list").out and "configure_error" in run("list", "--json").out
    shown = run("show", "db/0").out
    assert "Error processing \\x1b" in shown
    assert run("resolved", "db/0").out == f"db/0: config-changed counts as done. {LATER}\n"
    assert run("resolved", "db/0").out == "db/0: none of its hooks has failed\n"
    assert "started" in run("show", "db/0").out
    with opened(url=str(shop / "store.db")) as store:
        services.set_settings(store, "shop", "db", {}, ["title"])
        step = next_of(store, "db/0")
        assert step is not None
        commit(store, step)


def failing(step: object) -> dict[str, object]:
    raise Failed("Error processing \x1b: exit code 1.")


def test_the_log_is_shown_without_raw_control_characters(run: Run) -> None:
    lines = [line[21:] for line in run("log").out.splitlines()]
    assert lines == [
        "db/0 install  INFO      hello",
        "web/0 sta\\x1brt  ERROR     \\x1b[31m!",
        "web/0 sta\\x1brt  ERROR     2",
    ]
    assert len(run("log", "db").out.splitlines()) == len(run("log", "db/0").out.splitlines()) == 1
    assert len(run("log", "--limit", "1").out.splitlines()) == 1
    found = run("log", "web", "--json")
    assert "\x1b" not in found.out
    line = {"at": 2.0, "unit": "web/0", "hook": "sta\x1brt", "level": 40}
    assert found.json()["log"] == [{**line, "text": "\x1b[31m!"}, {**line, "text": "2"}]
