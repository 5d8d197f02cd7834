"""Cases for the node types for software and databases (see `truth`)."""

from __future__ import annotations

from typing import Any

from statecfg.graph.graph import Graph
from statecfg.resources import (
    ansible_module,
    git_checkout,
    postgresql_database,
    postgresql_extension,
    postgresql_grant,
    postgresql_user,
    python_venv,
)
from tests.host.resources import clusters
from tests.host.resources.truth_case import Case
from tests.host.resources.wheels import wheel
from tests.lab import Host

REPOSITORY = "/srv/truth-repository"
COMMIT = """
git init -q "$1" && cd "$1" && echo "$2" > f && git add f && git -c user.name=a -c user.email=a@b commit -qm "$2"
"""


def _git(root: str, requires: list[Graph]) -> list[Graph]:
    return [
        git_checkout(root, repository=REPOSITORY, requires=requires),
        git_checkout(f"{root}-gone", absent=True, requires=requires),
    ]


def _git_bare(host: Host, root: str) -> None:
    host.run(["sh", "-c", COMMIT, "sh", REPOSITORY, "one"])


def _git_drift(host: Host, root: str) -> None:
    host.run(["sh", "-c", COMMIT, "sh", REPOSITORY, "two"])
    host.run(["git", "clone", "--quiet", REPOSITORY, f"{root}-gone"])


def _venv(root: str, requires: list[Graph]) -> list[Graph]:
    packages = ["shop_tool==1.0", "helper"]
    return [python_venv(root, packages=packages, find_links=f"{root}-wheels", requires=requires)]


def _venv_bare(host: Host, root: str) -> None:
    for name, version in (("shop_tool", "1.0"), ("shop_tool", "2.0"), ("helper", "1")):
        wheel(host, f"{root}-wheels", name, version)


def _venv_drift(host: Host, root: str) -> None:
    pip = [f"{root}/bin/python", "-m", "pip", "install", "-q", "--no-index", "--find-links", f"{root}-wheels"]
    host.run([*pip, "shop_tool==2.0"])


PORTS = {"user": 5481, "database": 5482, "extension": 5483, "grant": 5484}


def _cluster(host: Host, root: str) -> None:
    """Create the server of a case, and start it."""
    kind = root.rpartition("_")[2]
    host.run(["systemctl", "start", clusters.create(host, kind, PORTS[kind])])


def _postgresql_user(root: str, requires: list[Graph]) -> list[Graph]:
    port = PORTS["user"]
    readers = postgresql_user("readers", login=False, port=port, requires=requires)
    return [
        postgresql_user("shop", password="a-Password-1", member_of=["readers"], port=port, requires=[readers]),
        postgresql_user("old", absent=True, port=port, requires=requires),
    ]


def _postgresql_user_drift(host: Host, root: str) -> None:
    clusters.sql(host, PORTS["user"], "ALTER ROLE readers LOGIN SUPERUSER")
    clusters.sql(host, PORTS["user"], "ALTER ROLE shop PASSWORD 'other'")
    clusters.sql(host, PORTS["user"], "CREATE ROLE old")


def _postgresql_database(root: str, requires: list[Graph]) -> list[Graph]:
    port = PORTS["database"]
    owner = postgresql_user("shop", port=port, requires=requires)
    return [
        postgresql_database("shop", owner="shop", encoding="UTF8", port=port, requires=[owner]),
        postgresql_database("old", absent=True, port=port, requires=requires),
    ]


def _postgresql_database_drift(host: Host, root: str) -> None:
    clusters.sql(host, PORTS["database"], "ALTER DATABASE shop OWNER TO postgres")
    clusters.sql(host, PORTS["database"], "CREATE DATABASE old")


def _postgresql_extension(root: str, requires: list[Graph]) -> list[Graph]:
    port = PORTS["extension"]
    database = postgresql_database("shop", port=port, requires=requires)
    return [postgresql_extension("hstore", database="shop", schema="public", port=port, requires=[database])]


def _postgresql_extension_drift(host: Host, root: str) -> None:
    clusters.sql(host, PORTS["extension"], "DROP EXTENSION hstore", "shop")


def _postgresql_grant(root: str, requires: list[Graph]) -> list[Graph]:
    port = PORTS["grant"]
    database = postgresql_database("shop", port=port, requires=requires)
    both = [database, postgresql_user("readers", port=port, requires=requires)]
    options: Any = {"role": "readers", "database": "shop", "port": port, "requires": both}
    return [
        postgresql_grant("schema", schema="public", privileges=["ALL"], **options),
        postgresql_grant("tables", tables="all", privileges=["SELECT"], **options),
        postgresql_grant("private", **{**options, "role": "public"}, privileges=["CONNECT"], absent=True),
    ]


def _postgresql_grant_drift(host: Host, root: str) -> None:
    clusters.sql(host, PORTS["grant"], "CREATE TABLE items (id int)", "shop")
    clusters.sql(host, PORTS["grant"], "GRANT CONNECT ON DATABASE shop TO PUBLIC")


def _ansible(root: str, requires: list[Graph]) -> list[Graph]:
    def run(module: str, requires: list[Graph], **arguments: Any) -> Graph:
        return ansible_module(f"{module}-{root}", module=module, arguments=arguments, requires=requires)

    return [
        run("lineinfile", requires, path=f"{root}-lines", line="port = 80", regexp="^port", create=True, mode="0640"),
        run("blockinfile", requires, path=f"{root}-block", block="one\ntwo", create=True),
        run("file", requires, path=root, state="directory", mode="0750"),
        run("group", requires, name="truth", system=True),
        run("stat", requires, path="/etc/passwd"),
    ]


def _ansible_drift(host: Host, root: str) -> None:
    host.write(f"{root}-lines", "port = 81\n")
    host.run(["chmod", "0700", root])
    host.run(["groupdel", "truth"])


SOFTWARE = [
    Case("postgresql_user", _postgresql_user, _postgresql_user_drift, _cluster),
    Case("postgresql_database", _postgresql_database, _postgresql_database_drift, _cluster),
    Case("postgresql_extension", _postgresql_extension, _postgresql_extension_drift, _cluster),
    Case("postgresql_grant", _postgresql_grant, _postgresql_grant_drift, _cluster),
    Case("python_venv", _venv, _venv_drift, _venv_bare),
    Case("git_checkout", _git, _git_drift, _git_bare),
    Case("ansible_module", _ansible, _ansible_drift),
]
