"""Users, databases and privileges of a real MariaDB server on a booted host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.databases import mariadb_servers
from tests.host.resources.text.test_text_edits import SECRET, Site, nodes
from tests.lab import Host

NAME = "mariadb-tests"
SOCKET = mariadb_servers.socket(NAME)


@pytest.fixture(scope="module")
def service(booted: Host) -> str:
    return mariadb_servers.create(booted, NAME)


@pytest.fixture
def site(booted: Host, service: str, tmp_path: Path) -> Iterator[Site]:
    found = Site(booted, tmp_path, "/srv")
    yield found
    found.clean()


def sql(host: Host, text: str) -> str:
    return mariadb_servers.sql(host, SOCKET, text)


def everything(*, running: bool = True) -> str:
    needs = f'["service:{NAME}"]' if running else "[]"
    service = f"  - service: {NAME}\n    running: true\n" if running else ""
    return f"""{service}
  - mariadb_user: shop
    socket: {SOCKET}
    password: "{{{{ word }}}}"
    max_connections: 5
    requires: {needs}
  - mariadb_user: reports
    host: "%"
    socket: {SOCKET}
    requires: {needs}
  - mariadb_database: my_shop
    socket: {SOCKET}
    character_set: utf8mb4
    requires: {needs}
  - mariadb_grant: shop
    user: shop
    database: my_shop
    privileges: [ALL, GRANT OPTION]
    socket: {SOCKET}
    requires: ["mariadb_user:shop", "mariadb_database:my_shop"]
  - mariadb_grant: reports
    user: reports
    host: "%"
    database: my_shop
    privileges: [SELECT]
    socket: {SOCKET}
    requires: ["mariadb_user:reports", "mariadb_database:my_shop"]
"""


def test_a_new_server_gets_its_objects_and_loses_them_again(site: Site, service: str) -> None:
    """The nodes are known after the server starts. Nothing shows the password, not even the server's log."""
    host = site.host
    planned = nodes(site.report("plan", everything()))
    assert planned["mariadb_user:shop"]["known_after"] == f"service:{NAME}"
    site.say("apply")
    assert {node["outcome"] for node in nodes(site.report("plan")).values()} == {"unchanged"}
    login = mariadb_servers.login(host, SOCKET, "shop", SECRET, "CREATE TABLE my_shop.items (id int)")
    assert login == (0, "")
    assert mariadb_servers.login(host, SOCKET, "shop", "wrong", "SELECT 1")[0] != 0
    assert mariadb_servers.login(host, SOCKET, "reports", "", "SELECT 1")[0] != 0
    # In the name of the database, `_` is not a wildcard.
    sql(host, "CREATE DATABASE myxshop")
    assert mariadb_servers.login(host, SOCKET, "shop", SECRET, "CREATE TABLE myxshop.t (id int)")[0] != 0
    sql(host, "DROP DATABASE myxshop; DROP TABLE my_shop.items")
    said = [site.say(verb, "", "--json") for verb in ("plan", "apply", "verify")]
    assert SECRET not in "".join(ran.out + ran.err for ran in said)
    assert "IDENTIFIED VIA" in host.read(f"/srv/{NAME}-data/general.log")
    found = host.run(["grep", "-rl", SECRET, "/var/lib/statecfg", f"/srv/{NAME}-data"], check=False)
    assert found.stdout == ""
    site.say("destroy")
    host.run(["systemctl", "start", service])
    assert sql(host, "SHOW DATABASES").split() == ["information_schema", "mysql", "performance_schema", "sys"]
    assert sql(host, "SELECT COUNT(*) FROM mysql.user WHERE User IN ('shop', 'reports')") == "0"


def test_changes_come_true_on_a_running_server(site: Site, service: str) -> None:
    """All nodes of a new database are planned in full, and what changed by hand is corrected."""
    host = site.host
    host.run(["systemctl", "start", service])
    site.come_true(everything(running=False))
    sql(host, "ALTER USER shop@localhost IDENTIFIED BY 'other' WITH MAX_USER_CONNECTIONS 9")
    sql(host, "REVOKE SELECT ON `my\\_shop`.* FROM reports; ALTER DATABASE my_shop CHARACTER SET latin1")
    sql(host, "CREATE TABLE my_shop.items (id int)")
    planned = site.come_true(everything(running=False))
    acting = {name: [action["op"] for action in node["actions"]] for name, node in planned.items() if node["actions"]}
    assert acting == {
        "mariadb_user:shop": ["alter_user", "set_login"],
        "mariadb_database:my_shop": ["alter_database"],
        "mariadb_grant:reports": ["change_privileges"],
    }
    # A database with content stays, and so does a user whose views run with its rights.
    sql(host, "CREATE DEFINER = shop@localhost VIEW my_shop.ids AS SELECT id FROM my_shop.items")
    ran = site.say("destroy")
    assert "the database my_shop contains 2 tables and views: it stays" in ran.out
    assert "the user shop@localhost of MariaDB stays: it is the definer of 1 views" in ran.out
    gone = f"  - mariadb_database: my_shop\n    socket: {SOCKET}\n    absent: true\n"
    reason = nodes(site.report("plan", gone, code=1))["mariadb_database:my_shop"]["reason"]
    assert "contains 2 tables and views" in reason
    gone += f"    remove_content: true\n  - mariadb_user: shop\n    socket: {SOCKET}\n    absent: true\n"
    site.come_true(gone)
    assert sql(host, "SHOW DATABASES LIKE 'my_shop'") == ""
    assert sql(host, "SELECT COUNT(*) FROM mysql.user WHERE User = 'shop'") == "0"


def test_objects_that_existed_get_their_attributes_back(site: Site, service: str) -> None:
    host = site.host
    host.run(["systemctl", "start", service])
    sql(host, "CREATE USER old@localhost IDENTIFIED VIA unix_socket REQUIRE X509 WITH MAX_USER_CONNECTIONS 3")
    sql(host, "CREATE DATABASE old CHARACTER SET latin1; GRANT INSERT ON old.* TO old@localhost")
    options = f"    socket: {SOCKET}\n"
    user = f'  - mariadb_user: old\n    password: "{{{{ word }}}}"\n    require_tls: false\n    locked: true\n{options}'
    database = f"  - mariadb_database: old\n    collate: utf8mb4_bin\n{options}"
    grant = f"  - mariadb_grant: old\n    user: old\n    database: old\n    privileges: [INSERT, SELECT]\n{options}"
    tables = f"  - mariadb_grant: process\n    user: old\n    database: '*'\n    privileges: [PROCESS]\n{options}"
    site.come_true(user + database + grant + tables)
    site.say("destroy")
    shown = sql(host, "SHOW CREATE USER old@localhost")
    assert "IDENTIFIED VIA unix_socket REQUIRE X509 WITH MAX_USER_CONNECTIONS 3" in shown and "LOCK" not in shown
    assert "latin1" in sql(host, "SHOW CREATE DATABASE old")
    grants = sql(host, "SHOW GRANTS FOR old@localhost")
    assert "GRANT INSERT ON `old`.* " in grants and "PROCESS" not in grants
    sql(host, "CREATE TABLE old.items (id int)")
    table = f"  - mariadb_grant: items\n    user: old\n    database: old\n    tables: [items]\n{options}"
    site.come_true(f"{table}    privileges: [SELECT, UPDATE]\n")
    assert "GRANT SELECT, UPDATE ON `old`.`items` " in sql(host, "SHOW GRANTS FOR old@localhost")
    site.say("destroy")
    assert "`items`" not in sql(host, "SHOW GRANTS FOR old@localhost")
    site.come_true(f"  - mariadb_user: old\n    absent: true\n{options}")
    sql(host, "DROP DATABASE old")


def test_names_with_quotes_and_wildcards_are_only_names(site: Site, service: str) -> None:
    """Other users, databases and tables with similar names are not touched."""
    host = site.host
    host.run(["systemctl", "start", service])
    database, user, table = "a`b'c_%\"", "o'b`r_\"", "t`'_%"
    quoted = database.replace("`", "``")
    sql(host, "CREATE DATABASE `a``b'cx%\"`; CREATE USER 'o''b`rx\"'@'%'")
    options = f"socket: {SOCKET}"
    who = f"user: {json.dumps(user)}, host: '%', database: {json.dumps(database)}, {options}"
    objects = f"  - {{mariadb_database: {json.dumps(database)}, {options}}}\n"
    objects += f"  - {{mariadb_user: {json.dumps(user)}, host: '%', {options}}}\n"
    site.come_true(objects)
    sql(host, f"CREATE TABLE `{quoted}`.`t``'_%` (id int); CREATE TABLE `{quoted}`.`t``'x%` (id int)")
    # Without this, a destroy may remove the user before its privileges.
    who += f", requires: {json.dumps([f'mariadb_database:{database}', f'mariadb_user:{user}'])}"
    grants = f"  - {{mariadb_grant: a, privileges: [SELECT], {who}}}\n"
    grants += f"  - {{mariadb_grant: b, privileges: [INSERT], tables: [{json.dumps(table)}], {who}}}\n"
    site.come_true(objects + grants)
    shown = sql(host, "SHOW GRANTS FOR 'o''b`r_\"'@'%'")
    assert "GRANT SELECT ON `a``b'c\\_\\%\"`.* TO" in shown
    assert f"GRANT INSERT ON `{quoted}`.`t``'_%` TO" in shown
    assert "GRANT USAGE" in sql(host, "SHOW GRANTS FOR 'o''b`rx\"'@'%'")
    sql(host, f"DROP TABLE `{quoted}`.`t``'_%`, `{quoted}`.`t``'x%`")
    site.say("destroy")
    assert sql(host, "SHOW DATABASES LIKE 'a%'") == "a`b'cx%\""
    assert sql(host, "SELECT User FROM mysql.user WHERE User LIKE 'o%b%'") == "o'b`rx\""
    sql(host, "DROP DATABASE `a``b'cx%\"`; DROP USER 'o''b`rx\"'@'%'")


def test_wrong_names_are_errors_of_the_plan(site: Site, service: str) -> None:
    site.host.run(["systemctl", "start", service])
    grant = f"  - mariadb_grant: wrong\n    user: rot\n    database: mysql\n    socket: {SOCKET}\n"
    reason = nodes(site.report("plan", f"{grant}    privileges: [SELECT]\n", code=1))["mariadb_grant:wrong"]["reason"]
    assert "user rot@localhost does not exist in MariaDB; did you mean `root@localhost`?" in reason
    other = "  - mariadb_user: shop\n    socket: /run/mysqld/other.sock\n"
    reason = nodes(site.report("plan", other, code=1))["mariadb_user:shop"]["reason"]
    assert "no MariaDB server answers on /run/mysqld/other.sock" in reason


def test_a_grant_takes_nothing_away(site: Site, service: str) -> None:
    """The server uses only the most specific row, so a new row gets what the user had through another one."""
    host = site.host
    host.run(["systemctl", "start", service])
    sql(host, "CREATE DATABASE an_app; CREATE USER app@localhost IDENTIFIED BY 'x', wide@localhost IDENTIFIED BY 'x'")
    sql(host, "CREATE TABLE an_app.t (id int); GRANT SELECT, INSERT ON `an_app`.* TO app@localhost")
    sql(host, "GRANT ALL ON `an%`.* TO wide@localhost")
    before = [sql(host, f"SHOW GRANTS FOR {user}@localhost") for user in ("app", "wide")]
    same = f"    database: an_app\n    socket: {SOCKET}\n"
    planned = site.come_true(
        f"  - mariadb_grant: app\n    user: app\n    privileges: [CREATE]\n{same}"
        f"  - mariadb_grant: wide\n    user: wide\n    privileges: [DROP]\n    absent: true\n{same}"
    )
    assert [action["args"]["revoke"] for action in planned["mariadb_grant:app"]["actions"]] == [[]]
    read, create = "SELECT * FROM an_app.t", "CREATE TABLE an_app.u (id int)"
    assert mariadb_servers.login(host, SOCKET, "app", "x", f"{read}; {create}") == (0, "")
    assert mariadb_servers.login(host, SOCKET, "wide", "x", read) == (0, "")
    assert mariadb_servers.login(host, SOCKET, "wide", "x", "DROP TABLE an_app.u")[0] != 0
    site.say("destroy")
    assert [sql(host, f"SHOW GRANTS FOR {user}@localhost") for user in ("app", "wide")] == before
    sql(host, "DROP DATABASE an_app; DROP USER app@localhost, wide@localhost")


def test_a_role_gives_what_a_node_removes(site: Site, service: str) -> None:
    """The user can use its roles, and what all users have, so the plan names them."""
    host = site.host
    host.run(["systemctl", "start", service])
    sql(host, "CREATE DATABASE an_app; CREATE TABLE an_app.t (id int); CREATE USER app@localhost IDENTIFIED BY 'x'")
    sql(host, "CREATE ROLE inner_role; CREATE ROLE `outer role`; GRANT inner_role TO `outer role`")
    sql(host, "GRANT `outer role` TO app@localhost; GRANT SELECT ON `an\\_%`.* TO inner_role")
    grant = "  - mariadb_grant: app\n    user: app\n    privileges: [SELECT]\n    absent: true\n    database: an_app\n"
    try:
        read = "SET ROLE `outer role`; SELECT * FROM an_app.t"
        assert mariadb_servers.login(host, SOCKET, "app", "x", read) == (0, "")
        for more in ("", "    tables: [t]\n"):
            failed = nodes(site.report("plan", f"{grant}{more}    socket: {SOCKET}\n", code=1))["mariadb_grant:app"]
            assert "app@localhost still has SELECT on `an\\_%`.* from the role inner_role" in failed["reason"]
        sql(host, "REVOKE SELECT ON `an\\_%`.* FROM inner_role; GRANT INSERT ON an_app.* TO inner_role")
        sql(host, "GRANT SELECT ON an_app.* TO app@localhost")
        site.come_true(f"{grant}    socket: {SOCKET}\n")
        assert mariadb_servers.login(host, SOCKET, "app", "x", read)[0] != 0
        site.say("destroy")
    finally:
        sql(host, "DROP DATABASE an_app; DROP USER app@localhost; DROP ROLE inner_role, `outer role`")


def test_other_names_of_character_sets(site: Site, service: str) -> None:
    site.host.run(["systemctl", "start", service])
    site.come_true(f"  - {{mariadb_database: u8, character_set: utf8, collate: utf8_bin, socket: {SOCKET}}}\n")
