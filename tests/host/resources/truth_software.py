"""Cases for the node types for software and databases (see `truth`)."""

from __future__ import annotations

from typing import Any

from statecfg.graph.graph import Graph
from statecfg.resources import (
    ansible_module,
    apt_pin,
    apt_repository,
    compose_project,
    container,
    container_image,
    debconf,
    gem,
    git_checkout,
    mariadb_database,
    mariadb_grant,
    mariadb_user,
    npm_package,
    package_upgrade,
    postgresql_database,
    postgresql_extension,
    postgresql_grant,
    postgresql_user,
    python_venv,
    redis_setting,
)
from tests.host.resources.containers import podman_hosts
from tests.host.resources.databases import clusters, mariadb_servers, redis_servers
from tests.host.resources.packages import gem_source, npm_registry
from tests.host.resources.packages.wheels import wheel
from tests.host.resources.truth_case import Case
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


PORT = 5481
MARIADB = "truth-mariadb"
SOCKET = mariadb_servers.socket(MARIADB)


def _cluster(host: Host, root: str) -> None:
    """Create the server of these cases, and start it."""
    if not list(host.path("/etc/postgresql").glob("*/truth")):
        host.run(["systemctl", "start", clusters.create(host, "truth", PORT)])


def _cluster_done(host: Host, root: str) -> None:
    host.run(["systemctl", "stop", "postgresql@*-truth.service"])


def _postgresql_user(root: str, requires: list[Graph]) -> list[Graph]:
    readers = postgresql_user("readers", login=False, port=PORT, requires=requires)
    return [
        postgresql_user("shop", password="a-Password-1", member_of=["readers"], port=PORT, requires=[readers]),
        postgresql_user("old", absent=True, port=PORT, requires=requires),
    ]


def _postgresql_user_drift(host: Host, root: str) -> None:
    clusters.sql(host, PORT, "ALTER ROLE readers LOGIN SUPERUSER")
    clusters.sql(host, PORT, "ALTER ROLE shop PASSWORD 'other'")
    clusters.sql(host, PORT, "CREATE ROLE old")


def _postgresql_database(root: str, requires: list[Graph]) -> list[Graph]:
    owner = postgresql_user("owner", port=PORT, requires=requires)
    return [
        postgresql_database("shop", owner="owner", encoding="UTF8", port=PORT, requires=[owner]),
        postgresql_database("old", absent=True, port=PORT, requires=requires),
    ]


def _postgresql_database_drift(host: Host, root: str) -> None:
    clusters.sql(host, PORT, "ALTER DATABASE shop OWNER TO postgres")
    clusters.sql(host, PORT, "CREATE DATABASE old")


def _postgresql_extension(root: str, requires: list[Graph]) -> list[Graph]:
    database = postgresql_database("extended", port=PORT, requires=requires)
    return [postgresql_extension("hstore", database="extended", schema="public", port=PORT, requires=[database])]


def _postgresql_extension_drift(host: Host, root: str) -> None:
    clusters.sql(host, PORT, "DROP EXTENSION hstore", "extended")


def _postgresql_grant(root: str, requires: list[Graph]) -> list[Graph]:
    database = postgresql_database("granted", port=PORT, requires=requires)
    both = [database, postgresql_user("reader", port=PORT, requires=requires)]
    options: Any = {"role": "reader", "database": "granted", "port": PORT, "requires": both}
    return [
        postgresql_grant("schema", schema="public", privileges=["ALL"], **options),
        postgresql_grant("tables", tables="all", privileges=["SELECT"], **options),
        postgresql_grant("private", **{**options, "role": "public"}, privileges=["CONNECT"], absent=True),
    ]


def _postgresql_grant_drift(host: Host, root: str) -> None:
    clusters.sql(host, PORT, "CREATE TABLE items (id int)", "granted")
    clusters.sql(host, PORT, "GRANT CONNECT ON DATABASE granted TO PUBLIC")


def _mariadb(host: Host, root: str) -> None:
    """Create the server of these cases, and start it."""
    if not host.path(f"/srv/{MARIADB}-data").exists():
        host.run(["systemctl", "start", mariadb_servers.create(host, MARIADB)])


def _mariadb_done(host: Host, root: str) -> None:
    host.run(["systemctl", "stop", MARIADB])


def _mariadb_user(root: str, requires: list[Graph]) -> list[Graph]:
    options: Any = {"socket": SOCKET, "requires": requires}
    return [
        mariadb_user("shop", password="a-Password-1", max_connections=5, **options),
        mariadb_user("backup", unix_socket=True, locked=False, **options),
        mariadb_user("old", host="%", absent=True, **options),
    ]


def _mariadb_user_drift(host: Host, root: str) -> None:
    mariadb_servers.sql(host, SOCKET, "ALTER USER shop@localhost IDENTIFIED BY 'other' WITH MAX_USER_CONNECTIONS 9")
    mariadb_servers.sql(host, SOCKET, "ALTER USER backup@localhost ACCOUNT LOCK; CREATE USER old")


def _mariadb_database(root: str, requires: list[Graph]) -> list[Graph]:
    options: Any = {"socket": SOCKET, "requires": requires}
    return [
        mariadb_database("shop", character_set="utf8mb4", collate="utf8mb4_unicode_ci", **options),
        mariadb_database("old", absent=True, **options),
    ]


def _mariadb_database_drift(host: Host, root: str) -> None:
    mariadb_servers.sql(host, SOCKET, "ALTER DATABASE shop COLLATE utf8mb4_bin; CREATE DATABASE old")


def _mariadb_grant(root: str, requires: list[Graph]) -> list[Graph]:
    both = [
        mariadb_database("my_shop", socket=SOCKET, requires=requires),
        mariadb_user("clerk", socket=SOCKET, requires=requires),
    ]
    options: Any = {"user": "clerk", "socket": SOCKET, "requires": both}
    return [
        *both,
        mariadb_grant("all", database="my_shop", privileges=["ALL"], **options),
        mariadb_grant("process", database="*", privileges=["PROCESS"], **options),
        mariadb_grant("no-drop", database="*", privileges=["DROP"], absent=True, **options),
    ]


def _mariadb_grant_drift(host: Host, root: str) -> None:
    mariadb_servers.sql(host, SOCKET, "REVOKE INSERT ON `my\\_shop`.* FROM clerk@localhost")
    mariadb_servers.sql(host, SOCKET, "GRANT DROP ON *.* TO clerk@localhost")


def _redis(host: Host, root: str) -> None:
    host.run(["systemctl", "start", redis_servers.create(host, "truth-redis", 6391)])


def _redis_setting(root: str, requires: list[Graph]) -> list[Graph]:
    options: Any = {"path": redis_servers.path("truth-redis"), "port": 6391, "requires": requires}
    return [
        redis_setting("maxmemory", value="64mb", **options),
        redis_setting("appendonly", value=True, **options),
        redis_setting("databases", value=4, running=False, **options),
        redis_setting("timeout", absent=True, **options),
    ]


def _redis_setting_drift(host: Host, root: str) -> None:
    redis_servers.ask(host, 6391, "CONFIG", "SET", "maxmemory", "1gb")
    host.write(redis_servers.path("truth-redis"), "port 6391\nappendonly yes\nmaxmemory 64mb\ntimeout 9\n")


def _npm_bare(host: Host, root: str) -> None:
    npm_registry.on_host(host, f"{root}-registry", ("tool", "1.0.0"), ("tool", "2.0.0"), ("old", "1.0.0"))
    host.run(["mkdir", root])


def _npm_package(root: str, requires: list[Graph]) -> list[Graph]:
    options: Any = {"prefix": root, "requires": requires}
    return [
        npm_package("tool", version="1.0.0", registry=npm_registry.URL, **options),
        npm_package("old", absent=True, **options),
    ]


def _npm_package_drift(host: Host, root: str) -> None:
    npm = ["npm", "install", "-g", "--prefix", root, "--registry", npm_registry.URL]
    host.run([*npm, "tool@2.0.0", "old@1.0.0"])


def _gem_bare(host: Host, root: str) -> None:
    gem_source.on_host(host, f"{root}-source", ("tool", "1.0.0"), ("tool", "2.0.0"), ("old", "1.0.0"))


def _gem(root: str, requires: list[Graph]) -> list[Graph]:
    options: Any = {"directory": root, "requires": requires}
    source = gem_source.url(f"{root}-source")
    return [
        gem("tool", version="1.0.0", only_version=True, source=source, **options),
        gem("old", absent=True, **options),
    ]


def _gem_drift(host: Host, root: str) -> None:
    install = ["gem", "install", "--silent", "--install-dir", root, "--clear-sources"]
    host.run([*install, "--source", gem_source.url(f"{root}-source"), "tool", "old"])


def _images_bare(host: Host, root: str) -> None:
    images = {"localhost/truth:2": f"{root}.tar", "localhost/truth:3": f"{root}-3.tar"}  # :3 is for the containers
    podman_hosts.prepare(host, "localhost/truth:1", *images)
    for name, archive in images.items():
        host.run(["podman", "save", "--quiet", "--output", archive, name])
    host.run(["podman", "rmi", *images])


def _container_image(root: str, requires: list[Graph]) -> list[Graph]:
    return [
        container_image("localhost/truth:2", archive=f"{root}.tar", requires=requires),
        container_image("localhost/gone:1", absent=True, requires=requires),
    ]


def _container_image_drift(host: Host, root: str) -> None:
    host.run(["podman", "rmi", "localhost/truth:2"])
    host.run(["podman", "tag", "localhost/truth:1", "localhost/gone:1"])


def _container(root: str, requires: list[Graph]) -> list[Graph]:
    image = container_image("localhost/truth:3", archive=f"{root}-3.tar", requires=requires)
    options: Any = {"image": "localhost/truth:3", "network": "none", "stop_timeout": 2, "requires": [image]}
    return [
        container("truth", env={"A": "1"}, labels={"team": "web"}, restart="always", **options),
        container("truth-stopped", running=False, **options),
        container("truth-gone", absent=True, requires=requires),
    ]


def _container_drift(host: Host, root: str) -> None:
    for name in ("truth", "truth-stopped"):
        host.run(["podman", "rm", "-f", "-t", "1", name])
    host.run(["podman", "create", "--name", "by-hand", "--network", "none", "localhost/truth:3"])


def _compose_bare(host: Host, root: str) -> None:
    podman_hosts.prepare(host, "localhost/truth:1")
    podman_hosts.allow_networks(host)
    host.write(f"{root}/compose.yaml", "services:\n  web: {image: localhost/truth:1}\n")


def _compose_project(root: str, requires: list[Graph]) -> list[Graph]:
    options: Any = {"directory": root, "stop_timeout": 2, "requires": requires}
    return [compose_project("truth", **options), compose_project("truth-gone", absent=True, **options)]


def _compose_project_drift(host: Host, root: str) -> None:
    host.write(f"{root}/compose.yaml", "services:\n  web: {image: localhost/truth:1, hostname: web}\n")


def _apt_repository(root: str, requires: list[Graph]) -> list[Graph]:
    options: Any = {"suites": ["./"], "trusted": True, "requires": requires}
    return [
        apt_repository("truth", uris=[f"file:{root}"], **options),
        apt_repository("gone", absent=True, requires=requires),
    ]


def _apt_repository_bare(host: Host, root: str) -> None:
    host.run(["cp", "-r", "/srv/apt", root])


def _apt_repository_drift(host: Host, root: str) -> None:
    host.write("/etc/apt/sources.list.d/truth.sources", "Types: deb\n")
    host.write("/etc/apt/sources.list.d/gone.sources", "")


def _apt_pin(root: str, requires: list[Graph]) -> list[Graph]:
    return [apt_pin("truth", packages=["nothing-*"], pin="release a=*", priority=-10, requires=requires)]


def _apt_pin_drift(host: Host, root: str) -> None:
    host.write("/etc/apt/preferences.d/truth", "Package: nothing\nPin: release a=*\nPin-Priority: 1\n")


def _debconf(root: str, requires: list[Graph]) -> list[Graph]:
    return [debconf("truth", answers={"truth/name": "one", "truth/sizes": ["a", "b"], "truth/ask": False})]


def _debconf_drift(host: Host, root: str) -> None:
    host.run(["debconf-communicate", "truth"], stdin="SET truth/name two\nUNREGISTER truth/ask\n")


def _package_upgrade(root: str, requires: list[Graph]) -> list[Graph]:
    return [package_upgrade("all", requires=requires)]


def _older(host: Host, root: str) -> None:
    host.run(["apt-get", "-qy", "--allow-downgrades", "install", "tool-a=1.0"])


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
    Case("mariadb_user", _mariadb_user, _mariadb_user_drift, _mariadb, done=_mariadb_done),
    Case("mariadb_database", _mariadb_database, _mariadb_database_drift, _mariadb, done=_mariadb_done),
    Case("mariadb_grant", _mariadb_grant, _mariadb_grant_drift, _mariadb, done=_mariadb_done),
    Case("apt_repository", _apt_repository, _apt_repository_drift, _apt_repository_bare),
    Case("apt_pin", _apt_pin, _apt_pin_drift),
    Case("debconf", _debconf, _debconf_drift),
    Case("package_upgrade", _package_upgrade, _older, _older),
    Case("postgresql_user", _postgresql_user, _postgresql_user_drift, _cluster, done=_cluster_done),
    Case("postgresql_database", _postgresql_database, _postgresql_database_drift, _cluster, done=_cluster_done),
    Case("postgresql_extension", _postgresql_extension, _postgresql_extension_drift, _cluster, done=_cluster_done),
    Case("postgresql_grant", _postgresql_grant, _postgresql_grant_drift, _cluster, done=_cluster_done),
    Case("redis_setting", _redis_setting, _redis_setting_drift, _redis),
    Case("npm_package", _npm_package, _npm_package_drift, _npm_bare),
    Case("container_image", _container_image, _container_image_drift, _images_bare),
    Case("container", _container, _container_drift, _images_bare),
    Case("compose_project", _compose_project, _compose_project_drift, _compose_bare),
    Case("gem", _gem, _gem_drift, _gem_bare),
    Case("python_venv", _venv, _venv_drift, _venv_bare),
    Case("git_checkout", _git, _git_drift, _git_bare),
    Case("ansible_module", _ansible, _ansible_drift),
]
