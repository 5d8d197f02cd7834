"""What MariaDB and Redis store and show: passwords, ways to log in, values with units, and lines of redis.conf."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.resources.shared import mariadb, mariadb_users, redis_settings

# Recorded with MariaDB 10.11: the column Priv of mysql.global_priv.
ROOT = {
    "access": 18446744073709551615,
    "plugin": "mysql_native_password",
    "authentication_string": "invalid",
    "auth_or": [{}, {"plugin": "unix_socket"}],
}
DIGEST = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"
SHOP = {"access": 0, "plugin": "mysql_native_password", "authentication_string": DIGEST}


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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
