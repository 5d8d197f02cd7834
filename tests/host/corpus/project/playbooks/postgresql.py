"""PostgreSQL: settings, access rules, two databases with an owner and a reader each, extensions, and nightly dumps."""

from __future__ import annotations

from statecfg import Graph, HostContext, play, secret
from statecfg.resources import (
    directory,
    file,
    group,
    line_in_file,
    package,
    postgresql_database,
    postgresql_extension,
    postgresql_grant,
    postgresql_user,
    service,
    systemd_unit,
    user,
)

VERSIONS = {"bookworm": "15", "trixie": "17"}  # of the server in each release of Debian
VARIABLES = {
    "shared_buffers": "64MB",
    "max_connections": 40,
    "databases": {"shop": ["pg_trgm", "hstore"], "stats": ["btree_gin"]},
    "networks": ["10.0.0.0/8"],
    "backups": "/var/backups/postgresql",
}


@play(hosts="all", vars=VARIABLES)
def postgresql(host: HostContext) -> list[Graph]:
    """Declare a server with its databases."""
    version = VERSIONS[host.facts.os.codename]
    etc = f"/etc/postgresql/{version}/main"
    unit = f"postgresql@{version}-main"
    common = package("postgresql-common", provides_units=[unit])
    server = package("postgresql", requires=[common])
    library = package("python3-psycopg2")
    extra = directory(f"{etc}/conf.d", mode="0755", owner="postgres", group="postgres", requires=[server])
    settings = [
        file(
            f"{etc}/{name}", template=f"postgresql/{template}.j2", mode=mode, owner="postgres", group="postgres",
            requires=[extra],
        )
        for name, template, mode in (
            ("conf.d/10-tuning.conf", "tuning.conf", "0644"),
            ("conf.d/20-logging.conf", "logging.conf", "0644"),
            ("pg_hba.conf", "pg_hba.conf", "0640"),
        )
    ]  # fmt: skip
    listens = line_in_file(
        f"{etc}/postgresql.conf", line="listen_addresses = '127.0.0.1'", match="^#?listen_addresses", requires=[server]
    )
    started = file(f"{etc}/start.conf", content="auto\n", mode="0644", owner="postgres", group="postgres",
                   requires=[server])  # fmt: skip
    limits = systemd_unit(
        unit, drop_in="limits", sections={"Service": {"LimitNOFILE": 32768, "OOMScoreAdjust": -800}}, requires=[server]
    )
    running = service(unit, running=True, requires=[started], restart_on=[*settings, listens, limits])
    enabled = service("postgresql", enabled=True, requires=[server])
    return [enabled, library, *_databases(host, running), *_backups(host, running)]


def _databases(host: HostContext, running: Graph) -> list[Graph]:
    """Return the databases with their owners, readers, extensions and privileges."""
    nodes = []
    for name, extensions in host.vars.databases.items():
        owner = postgresql_user(
            name, password=secret(f"{name}-password", env=f"CORPUS_PG_{name.upper()}_PASSWORD"), requires=[running]
        )
        reader = postgresql_user(
            f"{name}_reader", password=secret("reader-password", env="CORPUS_PG_READER_PASSWORD"), requires=[running]
        )
        database = postgresql_database(name, owner=name, encoding="UTF8", requires=[owner])
        nodes += [postgresql_extension(extension, database=name, requires=[database]) for extension in extensions]
        nodes.append(
            postgresql_grant(
                f"read-{name}", role=f"{name}_reader", database=name, privileges=["CONNECT"],
                requires=[database, reader],
            )
        )  # fmt: skip
    return nodes


def _backups(host: HostContext, running: Graph) -> list[Graph]:
    where = host.vars.backups
    team = group("pgbackup", system=True)
    account = user("pgbackup", system=True, group="pgbackup", home=where, shell="/usr/sbin/nologin", requires=[team])
    place = directory(where, mode="0750", owner="postgres", group="pgbackup", requires=[account, running])
    script = file("/usr/local/sbin/dump-databases", template="postgresql/dump.sh.j2", mode="0755")
    job = systemd_unit(
        "dump-databases",
        sections={"Service": {"Type": "oneshot", "User": "postgres", "ExecStart": "/usr/local/sbin/dump-databases"}},
        requires=[script, running],
    )
    timer = systemd_unit(
        "dump-databases.timer",
        sections={
            "Timer": {"OnCalendar": "*-*-* 02:40", "RandomizedDelaySec": 600},
            "Install": {"WantedBy": "timers.target"},
        },
        requires=[job],
    )
    return [service("dump-databases.timer", running=True, enabled=True, requires=[place], restart_on=[timer])]
