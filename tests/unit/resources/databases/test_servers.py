"""What MariaDB and Redis store and show: passwords, ways to log in, values with units, and lines of redis.conf."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statecfg import resources
from statecfg.playbook.compile import compile_graph
from statecfg.playbook.context import WireContext
from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import FACETS, REGISTRY
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.world import Probe
from statecfg.resources.databases.mariadb import mariadb, mariadb_users
from statecfg.resources.databases.postgresql import postgresql
from statecfg.resources.databases.redis import redis_settings
from tests.each import each
from tests.unit.resources.test_cases import declared, layers, planned
from tests.unit.resources.test_recorded import Undone

# Recorded with MariaDB 10.11: the column Priv of mysql.global_priv.
ROOT = {
    "access": 18446744073709551615,
    "plugin": "mysql_native_password",
    "authentication_string": "invalid",
    "auth_or": [{}, {"plugin": "unix_socket"}],
}
DIGEST = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"
SHOP = {
    "access": 0,
    "version_id": 101119,
    "plugin": "mysql_native_password",
    "authentication_string": DIGEST,
    "max_user_connections": 3,
    "password_last_changed": 1795438928,
    "ssl_type": 2,
    "ssl_cipher": "",
    "x509_issuer": "",
    "x509_subject": "",
    "account_locked": True,
}


def test_digest_is_that_of_the_server() -> None:
    """Source: the example of PASSWORD() in MariaDB's manual."""
    assert mariadb_users.digest("password") == DIGEST


@pytest.mark.parametrize(
    ("account", "methods"),
    [
        (ROOT, [("mysql_native_password", "invalid"), ("unix_socket", "")]),
        (SHOP, [("mysql_native_password", DIGEST)]),
        ({"access": 0}, [("mysql_native_password", "")]),
    ],
)
def test_ways_to_log_in_are_read_from_an_account(account: dict[str, Any], methods: list[tuple[str, str]]) -> None:
    assert mariadb.methods(account) == methods


def test_fields_of_users_and_databases_are_read_from_a_server() -> None:
    """Recorded with MariaDB 10.11, which prints each row as JSON. Roles have no host."""
    socket = mariadb.SOCKET
    rows: list[dict[str, Any]] = [
        {"version": "10.11.19-MariaDB-0+deb12u1", "utf8": "utf8mb3"},
        {"all": "SELECT"},
        {"database": "shop", "character_set": "utf8mb4", "collate": "utf8mb4_general_ci"},
        {"user": "shop", "host": "localhost", "account": json.dumps(SHOP)},
        {"user": "readers", "host": "", "account": json.dumps({"access": 0, "is_role": True})},
    ]
    answer = Probe(0, "\n".join(map(json.dumps, rows)).encode())
    machine = MemoryMachine({socket: ""}, probes={" ".join(mariadb.command(socket)): answer})
    assert FACETS["mariadb"].load(machine) == {
        f"server on {socket}": {"version": "10.11.19-MariaDB-0+deb12u1", "all": ["SELECT"], "utf8": "utf8mb3"},
        f"database shop on {socket}": {"character_set": "utf8mb4", "collate": "utf8mb4_general_ci"},
        f"user shop@localhost on {socket}": {
            "login": ["password"],
            "locked": True,
            "max_connections": 3,
            "tls": "x509",
        },
    }
    assert FACETS["mariadb_passwords"].load(machine) == {f"user shop@localhost on {socket}": {"digest": DIGEST}}


@each(
    ("name", "now", "wanted", "same"),
    [
        ("maxmemory", "268435456", "256mb", True),
        ("maxmemory", "256000000", "256M", True),
        ("maxmemory", "256000000", "256mb", False),
        ("appendonly", "yes", "Yes", True),
        ("save", "3600 1 300 100", "3600  1 300 100", True),
        ("dir", "/srv/Redis", "/srv/redis", False),
        ("requirepass", "1024", "1kb", False),
        ("requirepass", "a b", "a  b", False),
    ],
)
def test_running_values_are_compared_with_those_of_the_file(name: str, now: str, wanted: str, same: bool) -> None:
    assert redis_settings.same(name, now, wanted) is same


@each(
    ("name", "value", "line"),
    [
        ("maxmemory", "256mb", "maxmemory 256mb"),
        ("save", "3600 1 300 100", "save 3600 1 300 100"),
        ("save", "", 'save ""'),
        ("dir", "/srv/my redis", 'dir "/srv/my redis"'),
        ("requirepass", "word", 'requirepass "word"'),
        ("requirepass", 'a"\\b', 'requirepass "a\\"\\\\b"'),
    ],
)
def test_values_are_quoted_in_the_file_if_they_need_it(name: str, value: str, line: str) -> None:
    assert redis_settings.line(name, value) == line


SERVERS: dict[str, Any] = {
    "mariadb": {f"server on {mariadb.SOCKET}": {"version": "10.11.6-MariaDB", "all": ["SELECT"]}},
    "postgresql": {"server on 5432": {"user": "postgres", "version": 150000}},
    "postgresql_passwords": {},
}


@each(
    "node",
    [
        {"mariadb_database": "shop"},
        {"mariadb_user": "shop"},
        {"postgresql_database": "shop"},
        {"postgresql_user": "shop"},
    ],
)
def test_undo_removes_nothing_if_the_server_does_not_answer(node: dict[str, Any]) -> None:
    """The servers of this machine are known, but every query fails, as with too many connections."""
    machine = MemoryMachine(facets=SERVERS)
    with pytest.raises(CheckError, match=r"can't be read from .*; try again when the server answers"):
        Undone(machine, node)


def test_failed_queries_for_facets_of_postgresql_are_not_empty_answers() -> None:
    probes = {" ".join(postgresql.command(5432, "shop")): Probe(0, b"\n")}
    facets = {"postgresql": {**SERVERS["postgresql"], "database shop on 5432": {}, "database busy on 5432": {}}}
    machine = MemoryMachine({f"{postgresql.SOCKETS}/.s.PGSQL.5432": ""}, facets, probes)
    assert FACETS["postgresql_extensions"].load(machine) == {" in busy on 5432": {"unread": True}}
    assert FACETS["postgresql_passwords"].load(machine) == {"server on 5432": {"unread": True}}


REDIS = "/etc/redis.conf"


def redis(content: str, **attrs: Any) -> tuple[MemoryMachine, Undone, str]:
    """Apply and undo a setting. Return the machine, the undo, and everything that it recorded and reported."""
    probes = {" ".join(redis_settings.command("6379", "requirepass")): Probe(0, b'"oldhunter2"')}
    machine = MemoryMachine({REDIS: content}, probes=probes)
    node = {"redis_setting": "requirepass", "path": REDIS, **attrs}
    ((recorded,),) = layers([declared(node)], Path())
    memory = REGISTRY["redis_setting"].run_remember(recorded, machine)
    reported = [step.changes for layer in planned(machine, [[recorded]]).layers for step in layer]
    return machine, Undone(machine, node), f"{memory} {reported}"


@pytest.mark.parametrize(
    ("attrs", "left", "after"),
    [
        ({"absent": True}, "is not restored", "port 1\n"),
        ({"value": "new-word-9", "running": False}, "stays", 'port 1\nrequirepass "new-word-9"\n'),
        (
            {"value": "new-word-9"},
            "stays, and the running value stays",
            'port 1\nrequirepass "new-word-9"\n',
        ),
    ],
)
def test_former_password_of_redis_is_neither_recorded_nor_shown(attrs: dict[str, Any], left: str, after: str) -> None:
    machine, undone, told = redis("port 1\nrequirepass oldhunter2\n", **attrs)
    assert "oldhunter2" not in told
    text = f"the line of requirepass in {REDIS} {left}: statecfg does not record passwords"
    assert (undone.ops, undone.left) == ([], [text])
    assert machine.read(REDIS).decode() == after


def test_password_in_a_new_line_of_redis_is_removed_again() -> None:
    machine, undone, _ = redis("port 1\n", value="new-word-9", running=False)
    assert (undone.ops, undone.left) == (["restore_lines"], [])
    assert machine.read(REDIS).decode() == "port 1\n"


@pytest.mark.parametrize("end", ["", "\n"])
def test_passwords_next_to_a_setting_of_redis_are_not_recorded(end: str) -> None:
    text = f"requirepass oldhunter2\nhz 10\nmasterauth oldhunter3{end}"
    machine, undone, told = redis(text, redis_setting="hz", value=50, running=False)
    assert "oldhunter" not in told and undone.ops == ["restore_lines"]
    assert machine.read(REDIS).decode() == text


def test_password_of_digits_is_a_secret_too() -> None:
    graph = resources.redis_setting("requirepass", value=12345678)
    assert list(compile_graph(graph, WireContext()).secrets.values()) == ["12345678"]
