"""The settings of each playbook: its secrets and variables, and functions that prepare, change and check its host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.host.corpus import repository
from tests.lab import Host

# A drop-in that prevents chronyd from setting the clock, even before the playbook writes its own settings.
CHRONY_DROPIN = """\
[Unit]
ConditionCapability=

[Service]
ExecStart=
ExecStart=!/usr/sbin/chronyd -F 1 -x
"""


@dataclass(frozen=True)
class Role:
    """One playbook of the corpus.

    - `prepare(host, project)` prepares the host and returns further options of the command.
    - `drift(host)` changes resources of the playbook by hand.
    - `check(host)` checks that the service works.
    - `not_for_real` is a variable that adds nodes. The test only plans them, because they would change this machine.
    - `leaves` lists what a destroy may leave: kind, pattern of the name, and reason.
    """

    name: str
    playbook: str
    drift: Callable[[Host], None]
    check: Callable[[Host], None]
    secrets: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Host, Path], Sequence[str]] = lambda host, project: ()
    not_for_real: str = ""
    leaves: Sequence[tuple[str, str, str]] = ()


def writable_sysctls(host: Host, project: Path) -> Sequence[str]:
    """Make the sysctls of the host's own network writable; all others stay read-only."""
    script = "mkdir /run/net && mount -t proc proc /run/net && mount --bind /run/net/sys/net /proc/sys/net && "
    host.run(["sh", "-c", script + "umount --lazy /run/net && rmdir /run/net"])
    return ()


def _edit(host: Host, path: str, old: str, new: str) -> None:
    text = host.read(path)
    assert old in text, f"{path} has no {old!r}"
    host.write(path, text.replace(old, new), host.path(path).stat().st_mode & 0o7777)


def _drift_nginx(host: Host) -> None:
    _edit(host, "/etc/nginx/conf.d/limits.conf", "8m", "800m")
    host.path("/etc/nginx/sites-enabled/blog").unlink()
    host.run(["ln", "-s", "/etc/nginx/sites-available/default", "/etc/nginx/sites-enabled/default"])
    host.path("/srv/www/shop/robots.txt").unlink()
    host.run(["chown", "root:root", "/srv/www/blog"])
    host.run(["usermod", "-s", "/bin/sh", "webeditor"])
    host.run(["systemctl", "disable", "nginx"])


def _check_nginx(host: Host) -> None:
    page = host.run(["curl", "-fsS", "http://127.0.0.1:8080/"]).stdout
    assert "blog on nginx, port 8080" in page
    assert "shop on nginx" in host.run(["curl", "-fsSk", "https://127.0.0.1:8443/"]).stdout
    assert "401" in host.run(["curl", "-ksSI", "https://127.0.0.1:8443/private/"]).stdout


def _drift_redis(host: Host) -> None:
    _edit(host, "/etc/redis/redis.conf", "maxmemory 64mb", "maxmemory 1gb")
    host.run(["systemctl", "stop", "redis-server@sessions"])
    host.run(["sysctl", "-q", "-w", "net.core.somaxconn=128"])
    host.run(["chmod", "0777", "/srv/redis"])
    host.run(["gpasswd", "-d", "redis-backup", "redis"])


def _check_redis(host: Host) -> None:
    for port, password in (("6379", "redis-Secret-1"), ("6380", "redis-Secret-1")):
        asked = ["redis-cli", "-p", port, "--no-auth-warning", "-a", password, "ping"]
        assert host.run(asked).stdout.strip() == "PONG"
    assert "NOAUTH" in host.run(["redis-cli", "ping"], check=False).stdout
    assert host.run(["sysctl", "-n", "net.core.somaxconn"]).stdout.strip() == "1024"


def _drift_security(host: Host) -> None:
    _edit(host, "/etc/fail2ban/jail.local", "bantime = 3600", "bantime = 1")
    _edit(host, "/etc/ssh/sshd_config.d/10-security.conf", "MaxAuthTries 4", "MaxAuthTries 40")
    host.write("/etc/sudoers.d/admins", "%admins ALL=(ALL:ALL) ALL\n", 0o440)
    host.run(["systemctl", "stop", "apt-daily.timer"])
    host.run(["chmod", "0755", "/home/ann/.ssh"])
    host.run(["apt-get", "-qy", "purge", "apt-listchanges"])


def _check_security(host: Host) -> None:
    assert "web-login" in host.run(["fail2ban-client", "status"]).stdout
    assert host.run(["sshd", "-T"]).stdout.count("maxauthtries 4\n") == 1


def _prepare_time(host: Host, project: Path) -> Sequence[str]:
    host.write("/etc/systemd/system/chrony.service.d/90-not-this-clock.conf", CHRONY_DROPIN)
    return ()


def _drift_time(host: Host) -> None:
    host.write("/etc/chrony/sources.d/server2.sources", "server 192.0.2.99 iburst\n")
    host.run(["ln", "-sf", "/usr/share/zoneinfo/Etc/UTC", "/etc/localtime"])
    host.run(["chmod", "0644", "/etc/chrony/chrony.keys"])
    host.run(["systemctl", "stop", "chrony"])
    host.run(["sed", "-i", "/time1/d", "/etc/hosts"])


def _check_time(host: Host) -> None:
    assert "192.0.2.11" in host.run(["chronyc", "-n", "sources"]).stdout
    assert " -x" in host.run(["ps", "-C", "chronyd", "-o", "args="]).stdout
    assert host.run(["date", "+%Z"]).stdout.strip() in ("CET", "CEST")


def _drift_sshd(host: Host) -> None:
    _edit(host, "/etc/ssh/sshd_config.d/30-session.conf", "X11Forwarding no", "X11Forwarding yes")
    _edit(host, "/etc/ssh/sshd_config", "LogLevel VERBOSE", "LogLevel QUIET")
    host.run(["chmod", "0644", "/etc/ssh/sshd_config"])
    host.run(["gpasswd", "-a", "games", "sshusers"])
    host.write("/etc/ssh/ssh_host_dsa_key", "weak\n", 0o600)
    host.run(["rmdir", "/srv/sftp/acme/in"])


def _check_sshd(host: Host) -> None:
    effective = host.run(["sshd", "-T"]).stdout
    assert "x11forwarding no\n" in effective
    assert "allowgroups sshusers\n" in effective
    assert host.ssh(["true"]).returncode == 0


def _drift_postgresql(host: Host) -> None:
    (tuning,) = host.path("/etc/postgresql").glob("*/main/conf.d/10-tuning.conf")
    tuning.write_text(tuning.read_text().replace("64MB", "32MB"))
    host.run(["runuser", "-u", "postgres", "--", "dropdb", "stats"])
    host.run(["runuser", "-u", "postgres", "--", "psql", "-qd", "shop", "-c", "DROP EXTENSION hstore"])
    host.run(["systemctl", "stop", "dump-databases.timer"])


def _check_postgresql(host: Host) -> None:
    ask = ["env", "PGPASSWORD=pg-Shop-2", "psql", "-h", "127.0.0.1", "-U", "shop", "-Atc", "SHOW shared_buffers"]
    assert host.run(ask).stdout.strip() == "64MB"


def _drift_mariadb(host: Host) -> None:
    _edit(host, "/etc/mysql/mariadb.conf.d/60-server.cnf", "max_connections = 60", "max_connections = 600")
    host.run(["mariadb", "-e", "DROP DATABASE wiki; DROP USER backup@localhost"])
    host.run(["chmod", "0644", "/etc/mysql/backup/login.cnf"])
    host.run(["systemctl", "disable", "mariadb"])


def _check_mariadb(host: Host) -> None:
    ask = ["mariadb", "-u", "shop", "-pmaria-Shop-3", "-N", "-e", "SELECT @@max_connections", "shop"]
    assert host.run(ask).stdout.strip() == "60"


def _prepare_docker(host: Host, project: Path) -> Sequence[str]:
    repository.docker(host.path("/srv/docker-repository"), project / "files/docker.asc")
    return ("-e", "url=file:/srv/docker-repository")


def _drift_docker(host: Host) -> None:
    _edit(host, "/etc/docker/daemon.json", "10m", "100m")
    host.run(["gpasswd", "-d", "ci", "docker"])
    host.run(["systemctl", "stop", "containerd"])
    host.path("/etc/apt/preferences.d/docker-ce").unlink()
    host.write("/etc/apt/sources.list.d/docker.list", "# by hand\n")


def _check_docker(host: Host) -> None:
    assert host.run(["dpkg-query", "-Wf", "${Version}", "docker-ce"]).stdout == "5:24.0.7-1"
    assert host.run(["curl", "-fsS", "--unix-socket", "/run/docker.sock", "http://localhost/_ping"]).stdout == "OK"


def _drift_hardening(host: Host) -> None:
    host.run(["sysctl", "-q", "-w", "net.ipv4.conf.all.rp_filter=0"])
    _edit(host, "/etc/security/pwquality.conf", "minlen = 14", "minlen = 4")
    _edit(host, "/etc/login.defs", "PASS_MAX_DAYS 365", "PASS_MAX_DAYS 99999")
    host.run(["usermod", "-s", "/bin/bash", "games"])
    host.run(["chmod", "0755", "/etc/cron.daily", "/root"])
    host.run(["systemctl", "unmask", "ctrl-alt-del.target"])


def _check_hardening(host: Host) -> None:
    assert host.run(["sysctl", "-n", "net.ipv4.conf.all.rp_filter"]).stdout.strip() == "1"
    weak = host.run(["chpasswd"], stdin="games:short\n", check=False)
    assert weak.returncode, "a weak password was accepted"


REDIS_DATA = (("file", r"/srv/redis(/sessions(/.*)?)?", "data that redis wrote; its directories stay with it"),)
HOMES = (("file", r"/home/(ann|ci|deploy)(/.*)?", "homes stay unless a user says remove_home"),)
UNATTENDED_LOG = (("file", r"/var/log/unattended-upgrades(/.*)?", "Debian's purge keeps this log"),)
MARIADB_DATA = (
    ("file", r"/var/lib/mysql(/.*)?", "the package's purge keeps databases, as debconf's default says"),
    ("file", r"/etc/mysql(/debian\.cnf)?", "the same"),
    ("account", r"(passwd|group|shadow|gshadow) mysql", "the owner of the databases that stay"),
)
POSTGRESQL_ACCOUNTS = (
    ("account", r"(passwd|group|shadow|gshadow) (postgres|ssl-cert)", "Debian's purge keeps these accounts"),
)
ROLES = (
    Role("nginx", "nginx.hy", _drift_nginx, _check_nginx, {"CORPUS_HTPASSWD": "ann:$apr1$x$4v8yQ0dZt1mC2Zk9qk1oE1\n"}),
    Role(
        "redis", "redis.yml", _drift_redis, _check_redis,
        {"CORPUS_REDIS_PASSWORD": "redis-Secret-1", "CORPUS_REDIS_SESSIONS_PASSWORD": "redis-Secret-2"},
        writable_sysctls, not_for_real="whole_kernel", leaves=REDIS_DATA,
    ),
    Role("security", "security.yml", _drift_security, _check_security, leaves=(*HOMES, *UNATTENDED_LOG)),
    Role(
        "time", "time.hy", _drift_time, _check_time, {"CORPUS_CHRONY_KEY": "chrony-Key-4"}, _prepare_time,
        not_for_real="set_clock",
    ),
    Role("sshd", "sshd.py", _drift_sshd, _check_sshd, {"CORPUS_PARTNER_HASH": "$6$corpus$partner-Hash-5"}),
    Role(
        "postgresql", "postgresql.py", _drift_postgresql, _check_postgresql,
        {"CORPUS_PG_SHOP_PASSWORD": "pg-Shop-2", "CORPUS_PG_STATS_PASSWORD": "pg-Stats-2",
         "CORPUS_PG_READER_PASSWORD": "pg-Reader-2"},
        leaves=POSTGRESQL_ACCOUNTS,
    ),
    Role(
        "mariadb", "mariadb.yml", _drift_mariadb, _check_mariadb,
        {"CORPUS_MARIADB_SHOP": "maria-Shop-3", "CORPUS_MARIADB_WIKI": "maria-Wiki-3",
         "CORPUS_MARIADB_BACKUP": "maria-Backup-3"},
        leaves=MARIADB_DATA,
    ),
    Role(
        "docker", "docker.py", _drift_docker, _check_docker, {"CORPUS_REGISTRY_AUTH": "cmVnaXN0cnktQXV0aC02"},
        _prepare_docker, leaves=HOMES,
    ),
    Role("hardening", "hardening.hy", _drift_hardening, _check_hardening, {}, writable_sysctls,
         not_for_real="whole_kernel"),
)  # fmt: skip
