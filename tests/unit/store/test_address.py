"""The address of the store: its source, its meaning, and that no output contains the password."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecfg.playbook.project import Project, Settings, read_settings
from statecfg.problems import InvalidInput
from statecfg.store import address
from tests.each import each


@each(
    ("text", "path"),
    [
        ("hosts.db", "BASE/hosts.db"),
        ("sqlite:hosts.db", "BASE/hosts.db"),
        ("sqlite:///hosts.db", "BASE/hosts.db"),
        ("sqlite:////srv/hosts.db", "/srv/hosts.db"),
        ("sqlite:/srv/hosts.db", "/srv/hosts.db"),
        ("/srv/a b%41.db", "/srv/a b%41.db"),
        ("./a:b.db", "BASE/a:b.db"),
    ],
)
def test_parse_reads_paths_and_sqlite_urls(text: str, path: str, tmp_path: Path) -> None:
    found = address.parse(text, tmp_path)
    assert str(found.path) == found.label == path.replace("BASE", str(tmp_path))


def test_link_and_its_target_are_the_same_store(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "store.db")
    assert address.parse("link.db", tmp_path) == address.parse("store.db", tmp_path)


@each(
    ("text", "shown"),
    [
        ("postgresql://db/hosts", "postgresql://db/hosts"),
        ("postgres://ann:pa55w0rd@db:5433/hosts", "postgresql://ann@db:5433/hosts"),
        ("postgresql://ann:pa55w0rd%40%2F@db/hosts?sslmode=require", "postgresql://ann@db/hosts"),
        ("postgresql://ann@/hosts?host=/run/postgresql&password=pa55w0rd", "postgresql://ann@/hosts"),
    ],
)
def test_parse_reads_postgresql_urls_and_hides_passwords(text: str, shown: str, tmp_path: Path) -> None:
    found = address.parse(text, tmp_path)
    assert (found.path, found.label) == (None, shown)
    assert found.url.startswith("postgresql+psycopg://")
    assert "pa55w0rd" not in repr(found)


@each(
    "text",
    [
        "mysql://ann:pa55w0rd@db/hosts",
        "postgresql://ann:pa55w0rd@db",
        "postgresql://ann:12/pa55w0rd@db/hosts",
        "postgresql://ann:pa55w0rd#x@db/hosts",
        "postgresql://ann:p[a55w0rd@db/hosts",
        "postgresql:ann:pa55w0rd@db/hosts",
        "postgresql//ann:pa55w0rd@db/hosts",
        "sqlite://ann:pa55w0rd@db/hosts",
        ":memory:",
        "sqlite://",
        "hosts.db?mode=pa55w0rd",
        "\udcff.db",
    ],
)
def test_parse_refuses_invalid_addresses_without_showing_passwords(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        address.parse(text, tmp_path)
    (problem,) = refused.value.problems
    assert problem.code == "SC0413"
    assert "postgresql://USER@HOST" in problem.help
    assert "pa55w0rd" not in str(refused.value)


def test_store_flag_wins_over_environment_settings_and_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("STATECFG_STORE", raising=False)
    plain, named = Project(tmp_path), Project(tmp_path, Settings(store="named.db"))
    assert address.chosen(None).path == address.chosen(plain).path == tmp_path / "state/statecfg/store.db"
    assert address.chosen(named).path == tmp_path / "named.db"
    monkeypatch.setenv("STATECFG_STORE", "/srv/environment.db")
    assert address.chosen(named).label == "/srv/environment.db"
    assert address.chosen(named, "/srv/flag.db").label == "/srv/flag.db"


def test_store_setting_is_read_without_showing_its_password(tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").write_text('store = "postgresql://ann:pa55w0rd@db/hosts"\n')
    settings = read_settings(tmp_path / "statecfg.toml")
    assert settings.store == "postgresql://ann:pa55w0rd@db/hosts"
    assert "pa55w0rd" not in repr(settings)
    (tmp_path / "statecfg.toml").write_text("store = 5\n")
    with pytest.raises(InvalidInput, match="SC0410"):
        read_settings(tmp_path / "statecfg.toml")
