"""PostgreSQL: settings, access rules, two databases with an owner and a reader each, extensions, and nightly dumps."""

from __future__ import annotations

from statecfg import Graph, HostContext, Secret, play, secret
from statecfg.resources import command, directory, file, group, line_in_file, package, service, user

VARIABLES = {
    "postgresql_version": "15",
    "shared_buffers": "64MB",
    "max_connections": 40,
    "databases": {"shop": ["pg_trgm", "hstore"], "stats": ["btree_gin"]},
    "networks": ["10.0.0.0/8"],
    "backups": "/var/backups/postgresql",
}
PSQL = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"]


@play(hosts="all", vars=VARIABLES)
def postgresql(host: HostContext) -> list[Graph]:
    """Declare a server with its databases."""
    version = host.vars.postgresql_version
    etc = f"/etc/postgresql/{version}/main"
    unit = f"postgresql@{version}-main"
    common = package("postgresql-common")
    server = package("postgresql", requires=[common])
    library = package("python3-psycopg2")
    extra = directory(f"{etc}/conf.d", mode="0755", owner="postgres", group="postgres", requires=[server])
    tuned = file(
        f"{etc}/conf.d/10-tuning.conf", template="postgresql/tuning.conf.j2", mode="0644", owner="postgres",
        group="postgres", requires=[extra],
    )  # fmt: skip
    logged = file(
        f"{etc}/conf.d/20-logging.conf", template="postgresql/logging.conf.j2", mode="0644", owner="postgres",
        group="postgres", requires=[extra],
    )  # fmt: skip
    listens = line_in_file(
        f"{etc}/postgresql.conf", line="listen_addresses = '127.0.0.1'", match="^#?listen_addresses", requires=[server]
    )
    access = file(
        f"{etc}/pg_hba.conf", template="postgresql/pg_hba.conf.j2", mode="0640", owner="postgres", group="postgres",
        requires=[server],
    )  # fmt: skip
    started = file(f"{etc}/start.conf", content="auto\n", mode="0644", owner="postgres", group="postgres",
                   requires=[server])  # fmt: skip
    dropins = directory(f"/etc/systemd/system/{unit}.service.d")
    limits = file(
        f"/etc/systemd/system/{unit}.service.d/limits.conf",
        content="[Service]\nLimitNOFILE=32768\nOOMScoreAdjust=-800\n",
        mode="0644",
        requires=[dropins],
    )
    running = service(
        unit, running=True, requires=[started], restart_on=[tuned, logged, listens, access, limits], provides="running"
    )
    enabled = service("postgresql", enabled=True, requires=[server])
    return [enabled, library, *_databases(host, running), *_backups(host, running)]


def _query(text: str, database: str = "postgres") -> str:
    return f"""psql -X -A -t -d {database} -c "{text}" | grep -qx 1"""


def _databases(host: HostContext, running: Graph) -> list[Graph]:
    """Return roles, databases, extensions and rights. A role's password comes from its environment, not from argv."""
    nodes = []
    for name, extensions in host.vars.databases.items():
        owner = _role(name, secret(f"{name}-password", env=f"CORPUS_PG_{name.upper()}_PASSWORD"), running)
        reader = _role(f"{name}_reader", secret("reader-password", env="CORPUS_PG_READER_PASSWORD"), running)
        made = command(
            f"database-{name}",
            argv=["createdb", "--owner", name, "--encoding", "UTF8", "--template", "template0", name],
            unless=_query(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"),
            undo=["dropdb", "--force", name],
            user="postgres",
            cwd="/",
            effects={},
            requires=[owner],
        )
        for extension in extensions:
            nodes.append(
                command(
                    f"extension-{name}-{extension}",
                    argv=[*PSQL, "-d", name, "-c", f"CREATE EXTENSION {extension}"],
                    unless=_query(f"SELECT 1 FROM pg_extension WHERE extname = '{extension}'", name),
                    undo=[*PSQL, "-d", name, "-c", f"DROP EXTENSION {extension}"],
                    user="postgres",
                    cwd="/",
                    effects={},
                    requires=[made],
                )
            )
        nodes.append(
            command(
                f"read-{name}",
                argv=[*PSQL, "-d", name, "-c", f"GRANT CONNECT ON DATABASE {name} TO {name}_reader"],
                unless=_query(
                    f"SELECT 1 FROM pg_database, aclexplode(datacl) WHERE datname = '{name}' "
                    f"AND grantee = '{name}_reader'::regrole AND privilege_type = 'CONNECT'",
                ),
                undo=[*PSQL, "-d", name, "-c", f"REVOKE CONNECT ON DATABASE {name} FROM {name}_reader"],
                user="postgres",
                cwd="/",
                effects={},
                requires=[made, reader],
            )
        )
    return nodes


def _role(name: str, password: Secret, running: Graph) -> Graph:
    create = f"""printf "CREATE ROLE {name} LOGIN PASSWORD '%s'" "$ROLE_PASSWORD" | {" ".join(PSQL)}"""
    return command(
        f"role-{name}",
        shell=create,
        unless=_query(f"SELECT 1 FROM pg_roles WHERE rolname = '{name}'"),
        undo=["dropuser", name],
        env={"ROLE_PASSWORD": password},
        user="postgres",
        cwd="/",
        effects={},
        requires=[running],
    )


def _backups(host: HostContext, running: Graph) -> list[Graph]:
    where = host.vars.backups
    team = group("pgbackup", system=True)
    account = user("pgbackup", system=True, group="pgbackup", home=where, shell="/usr/sbin/nologin", requires=[team])
    place = directory(where, mode="0750", owner="postgres", group="pgbackup", requires=[account, running])
    script = file("/usr/local/sbin/dump-databases", template="postgresql/dump.sh.j2", mode="0755")
    job = file(
        "/etc/systemd/system/dump-databases.service",
        content="[Unit]\nDescription=Dump databases\n\n[Service]\nType=oneshot\nUser=postgres\n"
        "ExecStart=/usr/local/sbin/dump-databases\n",
        mode="0644",
        requires=[script],
    )
    timer = file(
        "/etc/systemd/system/dump-databases.timer",
        content="[Unit]\nDescription=Dump databases every night\n\n[Timer]\nOnCalendar=*-*-* 02:40\n"
        "RandomizedDelaySec=600\n\n[Install]\nWantedBy=timers.target\n",
        mode="0644",
        requires=[job],
    )
    scheduled = service("dump-databases.timer", running=True, enabled=True, requires=[place], restart_on=[timer])
    return [scheduled]
