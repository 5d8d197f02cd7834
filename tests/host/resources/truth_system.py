"""Cases for the node types that manage the system and access to it (see `truth`)."""

from __future__ import annotations

from statecfg.graph.graph import Graph
from statecfg.resources import (
    alternative,
    assertion,
    authorized_key,
    cron,
    directory,
    diversion,
    file,
    filesystem,
    host_entry,
    hostname,
    known_host,
    limits,
    locale,
    logrotate,
    mount,
    password_aging,
    service,
    sudoers,
    sysctl,
    systemd_unit,
    timezone,
    user,
    wait_for,
)
from tests.host.resources.truth_case import Case
from tests.lab import Host


def _cron(root: str, requires: list[Graph]) -> list[Graph]:
    environment = {"MAILTO": "root"}
    return [
        cron("truth", schedule="30 4 * * mon-fri", command="date +%F", environment=environment, requires=requires),
        cron("gone", absent=True, requires=requires),
    ]


def _cron_drift(host: Host, root: str) -> None:
    host.write("/etc/cron.d/truth", "@daily root true\n")
    host.write("/etc/cron.d/gone", "@daily root true\n")


def _sudoers(root: str, requires: list[Graph]) -> list[Graph]:
    commands = ["/usr/bin/systemctl restart webd", "/usr/bin/true"]
    return [
        sudoers("truth", users=["daemon", "%daemon"], commands=commands, password=False, requires=requires),
        sudoers("lecture", content="Defaults lecture = never\n", requires=requires),
    ]


def _sudoers_drift(host: Host, root: str) -> None:
    host.write("/etc/sudoers.d/truth", "daemon ALL=(ALL) ALL\n")
    host.path("/etc/sudoers.d/lecture").chmod(0o644)


def _limits(root: str, requires: list[Graph]) -> list[Graph]:
    return [limits("truth", domain="@daemon", soft={"nofile": 4096}, hard={"nofile": 8192}, requires=requires)]


def _limits_drift(host: Host, root: str) -> None:
    host.write("/etc/security/limits.d/truth.conf", "@daemon soft nofile 1\n")


def _logrotate(root: str, requires: list[Graph]) -> list[Graph]:
    paths, scripts = [f"{root}/*.log"], {"postrotate": "true"}
    return [logrotate("truth", paths=paths, directives=["weekly", "rotate 8"], scripts=scripts, requires=requires)]


def _logrotate_drift(host: Host, root: str) -> None:
    host.path("/etc/logrotate.d/truth").unlink()


def _unit(root: str, requires: list[Graph]) -> list[Graph]:
    sections = {"Service": {"ExecStart": "/usr/bin/sleep 7302"}, "Install": {"WantedBy": "multi-user.target"}}
    unit = systemd_unit("truth", sections=sections, requires=requires)
    drop_in = systemd_unit(
        "truth", drop_in="nice", sections={"Service": {"Nice": 5}}, requires=[unit], provides="truth drop-in"
    )
    timer = {"Timer": {"OnCalendar": "daily"}, "Install": {"WantedBy": "timers.target"}}
    return [
        service("truth", running=True, enabled=True, restart_on=[unit, drop_in]),
        systemd_unit("truth.timer", sections=timer, requires=[unit]),
    ]


def _unit_drift(host: Host, root: str) -> None:
    host.write("/etc/systemd/system/truth.service", "[Service]\nExecStart=/usr/bin/sleep 7303\n")
    host.run(["rm", "-r", "/etc/systemd/system/truth.service.d"])


def _host_entry(root: str, requires: list[Graph]) -> list[Graph]:
    return [
        host_entry("192.0.2.11", names=["db1.example.org", "db1"], requires=requires),
        host_entry("2001:db8::7", names=["mail"], requires=requires),
        host_entry("192.0.2.12", absent=True, requires=requires),
    ]


def _host_entry_drift(host: Host, root: str) -> None:
    host.write("/etc/hosts", "127.0.0.1 localhost\n192.0.2.11\tother\n192.0.2.12 old\n")


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"


def _known_host(root: str, requires: list[Graph]) -> list[Graph]:
    return [
        known_host("git.example.org", key=KEY, requires=requires),
        known_host("[backup.example.org]:2222", key=KEY, requires=requires),
    ]


def _known_host_drift(host: Host, root: str) -> None:
    host.write("/etc/ssh/ssh_known_hosts", "git.example.org ssh-ed25519 AAAA\nother ssh-rsa AAAA\n")


def _authorized_key(root: str, requires: list[Graph]) -> list[Graph]:
    ann = user("ann", requires=requires)
    return [
        authorized_key("ann@laptop", user="ann", key=KEY, requires=[ann]),
        authorized_key("gone", user="nobody-else", key=KEY, absent=True, requires=requires),
    ]


def _authorized_key_drift(host: Host, root: str) -> None:
    host.write("/home/ann/.ssh/authorized_keys", f"no-pty {KEY} by hand\nssh-rsa AAAA other\n")


def writable_settings(host: Host) -> None:
    """Let a booted host change the settings of its own network, which systemd-nspawn makes read-only."""
    script = "mkdir -p /run/net && mount -t proc proc /run/net && mount --bind /run/net/sys/net /proc/sys/net"
    host.run(["sh", "-c", f"{script} && umount --lazy /run/net"])


def _sysctl(root: str, requires: list[Graph]) -> list[Graph]:
    return [
        sysctl("net.ipv4.tcp_fin_timeout", value=31, requires=requires),
        sysctl("net.ipv4.tcp_rmem", value="4096 131072 6291455", requires=requires),
    ]


def _sysctl_drift(host: Host, root: str) -> None:
    host.run(["sysctl", "-w", "net.ipv4.tcp_fin_timeout=32"])
    host.write("/etc/sysctl.d/99-statecfg.conf", "net.ipv4.tcp_rmem=1 2 3\n")


def _hostname(root: str, requires: list[Graph]) -> list[Graph]:
    return [hostname("truth", requires=requires)]


def _hostname_drift(host: Host, root: str) -> None:
    host.run(["hostname", "by-hand"])


def _timezone(root: str, requires: list[Graph]) -> list[Graph]:
    return [timezone("Europe/Berlin", requires=requires)]


def _timezone_drift(host: Host, root: str) -> None:
    host.run(["ln", "-sfn", "/usr/share/zoneinfo/Asia/Tokyo", "/etc/localtime"])


def _filesystem_bare(host: Host, root: str) -> None:
    host.write(f"{root}/disk", "\0" * (4 << 20))


def _filesystem(root: str, requires: list[Graph]) -> list[Graph]:
    return [filesystem(f"{root}/disk", fstype="ext4", label="truth", format_options=["-m", "0"], requires=requires)]


def _locale(root: str, requires: list[Graph]) -> list[Graph]:
    return [
        locale("en_US.UTF-8", default_for=["LANG", "LC_TIME"], requires=requires),
        locale("de_AT@euro", requires=requires),
        locale("fr_FR.UTF-8", absent=True, requires=requires),
    ]


def _locale_drift(host: Host, root: str) -> None:
    host.write("/etc/default/locale", "# by hand\nLANG=C\n")
    host.run(["localedef", "--delete-from-archive", "de_AT@euro"])
    host.run(["localedef", "-i", "fr_FR", "-c", "-f", "UTF-8", "fr_FR.UTF-8"])


def _password_aging(root: str, requires: list[Graph]) -> list[Graph]:
    ageing = user("ageing", requires=requires)
    return [
        password_aging("ageing", min_days=1, max_days=365, expires="2037-01-31", requires=[ageing]),
        password_aging("daemon", warn_days=9, inactive_days=-1, requires=requires),
    ]


def _password_aging_drift(host: Host, root: str) -> None:
    host.run(["chage", "--maxdays", "400", "--inactive", "5", "ageing"])
    host.run(["chage", "--inactive", "3", "daemon"])


def _mount(root: str, requires: list[Graph]) -> list[Graph]:
    place = directory(root, requires=requires)
    options = ["size=1m", "mode=0750"]
    return [mount(root, source="tmpfs", fstype="tmpfs", mount_options=options, requires=[place])]


def _mount_drift(host: Host, root: str) -> None:
    host.run(["umount", root])
    host.write("/etc/fstab", f"tmpfs {root} tmpfs size=2m 0 0\n")


def _alternative(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    programs = [file(f"{root}/{name}", content="", mode="0755", requires=[above]) for name in ("one", "two")]
    first = alternative("truth", path=f"{root}/one", link="/usr/local/bin/truth", priority=5, requires=programs)
    return [first]


def _alternative_drift(host: Host, root: str) -> None:
    host.run(["update-alternatives", "--install", "/usr/local/bin/truth", "truth", f"{root}/two", "9"])
    host.run(["update-alternatives", "--auto", "truth"])
    host.run(["rm", "/usr/local/bin/truth"])


def _diversion(root: str, requires: list[Graph]) -> list[Graph]:
    return [diversion("/etc/issue", to="/etc/issue.debian", requires=requires)]


def _diversion_drift(host: Host, root: str) -> None:
    host.run(["dpkg-divert", "--local", "--rename", "--remove", "/etc/issue"])


def _wait_for(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    ready = file(f"{root}/ready", content="yes\n", requires=[above])
    return [
        wait_for("ready", path=f"{root}/ready", contains="^yes$", timeout=9, interval=0.1, requires=[ready]),
        wait_for("login", port=22, timeout=9, interval=0.1, requires=requires),
    ]


def _wait_for_drift(host: Host, root: str) -> None:
    host.write(f"{root}/ready", "no\n")


def _assertion(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    ready = file(f"{root}/ready", content="yes\n", requires=[above])
    return [
        assertion("ready", path=f"{root}/ready", contains="^yes$", requires=[ready]),
        assertion("journal", unit="systemd-journald", requires=requires),
        assertion("free", path=f"{root}/stop", gone=True, requires=[above]),
    ]


SYSTEM = [
    Case("cron", _cron, _cron_drift),
    Case("sudoers", _sudoers, _sudoers_drift),
    Case("limits", _limits, _limits_drift),
    Case("logrotate", _logrotate, _logrotate_drift),
    Case("systemd_unit", _unit, _unit_drift),
    Case("host_entry", _host_entry, _host_entry_drift),
    Case("known_host", _known_host, _known_host_drift),
    Case("authorized_key", _authorized_key, _authorized_key_drift),
    Case("sysctl", _sysctl, _sysctl_drift, lambda host, root: writable_settings(host)),
    Case("hostname", _hostname, _hostname_drift),
    Case("timezone", _timezone, _timezone_drift),
    Case("filesystem", _filesystem, _filesystem_bare, _filesystem_bare),
    Case("locale", _locale, _locale_drift),
    Case("password_aging", _password_aging, _password_aging_drift),
    Case("mount", _mount, _mount_drift),
    Case("alternative", _alternative, _alternative_drift),
    Case("diversion", _diversion, _diversion_drift),
    Case("wait_for", _wait_for, _wait_for_drift),
    Case("assertion", _assertion, _wait_for_drift),
]
