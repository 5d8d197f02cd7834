"""Roles, databases, extensions and privileges of a real PostgreSQL server on a booted host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.databases import clusters
from tests.host.resources.text.test_text_edits import SECRET, Site, nodes
from tests.lab import Host

PORT = 5491


@pytest.fixture(scope="module")
def service(booted: Host) -> str:
    return clusters.create(booted, "tests", PORT)


@pytest.fixture
def site(booted: Host, service: str, tmp_path: Path) -> Iterator[Site]:
    found = Site(booted, tmp_path, "/srv")
    yield found
    found.clean()


def everything(service: str) -> str:
    return f"""
  - service: {service}
    running: true
  - postgresql_user: shop
    port: {PORT}
    password: "{{{{ word }}}}"
    connection_limit: 5
    requires: ["service:{service}"]
  - postgresql_user: readers
    port: {PORT}
    login: false
    requires: ["service:{service}"]
  - postgresql_user: ann
    port: {PORT}
    member_of: [readers]
    requires: ["postgresql_user:readers"]
  - postgresql_database: shop
    port: {PORT}
    owner: shop
    encoding: UTF8
    requires: ["postgresql_user:shop"]
  - postgresql_extension: pg_trgm
    port: {PORT}
    database: shop
    requires: ["postgresql_database:shop"]
  - postgresql_grant: connect
    port: {PORT}
    role: readers
    database: shop
    privileges: [CONNECT]
    requires: ["postgresql_database:shop", "postgresql_user:readers"]
  - postgresql_grant: read
    port: {PORT}
    role: readers
    database: shop
    tables: all
    privileges: [SELECT]
    requires: ["postgresql_database:shop", "postgresql_user:readers"]
  - postgresql_grant: private
    port: {PORT}
    role: public
    database: shop
    privileges: [CONNECT, TEMP]
    absent: true
    requires: ["postgresql_database:shop"]
"""


def test_a_new_server_gets_its_objects_and_loses_them_again(site: Site, service: str) -> None:
    """The nodes are known after the server starts. Nothing shows the password, not even the server's log."""
    host = site.host
    planned = nodes(site.report("plan", everything(service)))
    assert planned["postgresql_user:shop"]["known_after"] == f"service:{service}"
    site.say("apply")
    assert {node["outcome"] for node in nodes(site.report("plan")).values()} == {"unchanged"}
    assert clusters.login(host, PORT, "shop", SECRET, "shop", "SELECT similarity('a', 'b')") == (0, "0")
    assert clusters.login(host, PORT, "shop", "wrong", "shop", "SELECT 1")[0] != 0
    assert clusters.sql(host, PORT, "SELECT rolconnlimit FROM pg_roles WHERE rolname = 'shop'") == "5"
    said = [site.say(verb, "", "--json") for verb in ("plan", "apply", "verify")]
    assert SECRET not in "".join(ran.out + ran.err for ran in said)
    assert host.run(["grep", "-rl", SECRET, "/var/lib/statecfg", "/var/log/postgresql"], check=False).stdout == ""
    site.say("destroy")
    host.run(["systemctl", "start", service])
    assert clusters.sql(host, PORT, "SELECT count(*) FROM pg_database") == "3"
    assert clusters.sql(host, PORT, "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_'") == "postgres"


def test_changes_come_true_on_a_running_server(site: Site, service: str) -> None:
    """All nodes of a new database are planned in full, and what changed by hand is corrected."""
    host = site.host
    host.run(["systemctl", "start", service])
    planned = site.come_true(everything(service))
    assert planned["postgresql_grant:private"]["actions"][0]["args"]["revoke"] == [["shop", ["CONNECT", "TEMPORARY"]]]
    clusters.sql(host, PORT, "CREATE TABLE items (id int)", "shop")
    clusters.sql(host, PORT, "ALTER ROLE shop CREATEDB CONNECTION LIMIT 9 PASSWORD 'other'")
    clusters.sql(host, PORT, "REVOKE readers FROM ann")
    planned = site.come_true(everything(service))
    acting = {name: [action["op"] for action in node["actions"]] for name, node in planned.items() if node["actions"]}
    assert acting == {
        "postgresql_user:shop": ["alter_role", "set_password"],
        "postgresql_user:ann": ["set_groups"],
        "postgresql_grant:read": ["change_privileges"],
    }
    assert clusters.login(host, PORT, "shop", SECRET, "shop", "SELECT count(*) FROM items")[0] != 0  # not its owner
    # A database with content stays, and so do the roles that it needs.
    ran = site.say("destroy")
    assert "the database shop contains 1 tables and views: it stays" in ran.out
    assert "the role shop of PostgreSQL stays: it owns the database shop" in ran.out
    host.run(["systemctl", "start", service])
    assert clusters.sql(host, PORT, "SELECT datname FROM pg_database WHERE datname = 'shop'") == "shop"
    gone = f"  - postgresql_database: shop\n    port: {PORT}\n    absent: true\n"
    assert (
        "contains 1 tables and views" in nodes(site.report("plan", gone, code=1))["postgresql_database:shop"]["reason"]
    )
    gone += "    remove_content: true\n"
    for role in ("shop", "readers"):
        gone += f"  - postgresql_user: {role}\n    port: {PORT}\n    absent: true\n"
        gone += "    requires: ['postgresql_database:shop']\n"
    site.come_true(gone)
    assert clusters.sql(host, PORT, "SELECT count(*) FROM pg_database") == "3"
    assert clusters.sql(host, PORT, "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_'") == "postgres"


def test_objects_that_existed_get_their_attributes_back(site: Site, service: str) -> None:
    host = site.host
    host.run(["systemctl", "start", service])
    clusters.sql(host, PORT, "CREATE ROLE old CREATEDB CONNECTION LIMIT 3")
    clusters.sql(host, PORT, "CREATE DATABASE old")
    role = f"  - postgresql_user: old\n    port: {PORT}\n    create_databases: false\n    connection_limit: 4\n"
    database = (
        f"  - postgresql_database: old\n    port: {PORT}\n    owner: old\n    requires: ['postgresql_user:old']\n"
    )
    grant = f"  - postgresql_grant: old\n    port: {PORT}\n    role: old\n    database: postgres\n"
    grant += "    schema: public\n    privileges: [CREATE]\n    requires: ['postgresql_user:old']\n"
    site.come_true(role + database + grant)
    site.say("destroy")
    shown = clusters.sql(
        host, PORT, "SELECT rolcreatedb, rolconnlimit, rolcanlogin FROM pg_roles WHERE rolname = 'old'"
    )
    assert shown == "t|3|f"
    owner = clusters.sql(host, PORT, "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'old'")
    assert owner == "postgres"
    clusters.sql(host, PORT, "DROP DATABASE old")
    gone = f"  - postgresql_user: old\n    port: {PORT}\n    absent: true\n"
    site.come_true(gone)
    assert clusters.sql(host, PORT, "SELECT count(*) FROM pg_roles WHERE rolname = 'old'") == "0"


def test_wrong_names_are_errors_of_the_plan(site: Site, service: str) -> None:
    site.host.run(["systemctl", "start", service])
    grant = f"  - postgresql_grant: wrong\n    port: {PORT}\n    role: postgress\n    database: postgres\n"
    wrong = grant + "    privileges: [CONNECT]\n"
    reason = nodes(site.report("plan", wrong, code=1))["postgresql_grant:wrong"]["reason"]
    assert "role postgress does not exist in PostgreSQL; did you mean `postgres`?" in reason
    extension = f"  - postgresql_extension: none-such\n    port: {PORT}\n    database: postgres\n"
    reason = nodes(site.report("plan", extension, code=1))["postgresql_extension:none-such"]["reason"]
    assert "the server has no extension none-such" in reason
    other = "  - postgresql_user: shop\n    port: 5499\n"
    reason = nodes(site.report("plan", other, code=1))["postgresql_user:shop"]["reason"]
    assert "no PostgreSQL server answers on port 5499 of this host" in reason


def test_a_role_gets_privileges_on_tables_that_others_create_later(site: Site, service: str) -> None:
    host = site.host
    host.run(["systemctl", "start", service])
    for statement in ("CREATE ROLE maker", "CREATE ROLE viewer", "CREATE SCHEMA app AUTHORIZATION maker"):
        clusters.sql(host, PORT, statement)
    common = f"    port: {PORT}\n    role: viewer\n    database: postgres\n    default_for: maker\n"
    grants = f"  - postgresql_grant: tables\n{common}    schema: app\n    tables: all\n    privileges: [SELECT]\n"
    grants += f"  - postgresql_grant: sequences\n{common}    sequences: all\n    privileges: [USAGE, SELECT]\n"
    site.come_true(grants)
    clusters.sql(host, PORT, "SET ROLE maker; CREATE TABLE app.later (id serial)")
    has = "SELECT has_table_privilege('viewer', 'app.later', '%s')"
    assert [clusters.sql(host, PORT, has % word) for word in ("SELECT", "INSERT")] == ["t", "f"]
    assert clusters.sql(host, PORT, "SELECT has_sequence_privilege('viewer', 'app.later_id_seq', 'USAGE')") == "t"
    clusters.sql(
        host, PORT, "ALTER DEFAULT PRIVILEGES FOR ROLE maker IN SCHEMA app REVOKE SELECT ON TABLES FROM viewer"
    )
    changed = site.come_true(grants)
    assert [name for name, node in changed.items() if node["actions"]] == ["postgresql_grant:tables"]
    site.say("destroy")
    host.run(["systemctl", "start", service])
    assert clusters.sql(host, PORT, "SELECT count(*) FROM pg_default_acl") == "0"
    for statement in ("DROP SCHEMA app CASCADE", "DROP ROLE maker", "DROP ROLE viewer"):
        clusters.sql(host, PORT, statement)


def test_privileges_from_elsewhere_are_not_overlooked(site: Site, service: str) -> None:
    """A role also has what all roles have, and what the roles have to which it belongs."""
    host = site.host
    host.run(["systemctl", "start", service])
    clusters.sql(host, PORT, "CREATE ROLE team; CREATE ROLE bob LOGIN IN ROLE team")
    clusters.sql(host, PORT, "CREATE DATABASE private")
    clusters.sql(host, PORT, "GRANT CREATE ON DATABASE private TO team, bob")
    node = f"  - postgresql_grant: bob\n    role: bob\n    database: private\n    port: {PORT}\n    absent: true\n"
    for word, source in (("CREATE", "from the role team, to which it belongs"), ("CONNECT", "from all roles (public)")):
        found = nodes(site.report("plan", f"{node}    privileges: [{word}]\n", code=1))["postgresql_grant:bob"]
        assert f"bob still has {word} on private {source}" in found["reason"]
    site.come_true(f"{node}    privileges: [CREATE]\n    allow_override: true\n")
    clusters.sql(host, PORT, "REVOKE CREATE ON DATABASE private FROM team")
    assert {one["outcome"] for one in nodes(site.report("plan", f"{node}    privileges: [CREATE]\n")).values()} == {
        "unchanged"
    }
    password = f'  - postgresql_user: bob\n    port: {PORT}\n    password: "{{{{ word }}}}"\n'
    assert "1 to change" in site.say("plan", password).out
    site.clean()
    clusters.sql(host, PORT, "DROP DATABASE private")
    clusters.sql(host, PORT, "DROP ROLE bob, team")
