"""A hardened SSH server: algorithms, access, banner, host keys, moduli, SFTP for partners, PAM, and the client.

sshd is restarted only if `sshd -t` accepts all of it.
"""

from __future__ import annotations

from typing import Any

from statecfg import Graph, HostContext, play, secret
from statecfg.resources import (
    directory,
    file,
    group,
    known_host,
    line_in_file,
    package,
    replace,
    service,
    ssh_config,
    ssh_key,
    sshd_config,
    systemd_unit,
    user,
)

CONFIG = "/etc/ssh/sshd_config"
CHECK = ["sshd", "-t", "-f", "{}"]
# Lines of /etc/ssh/moduli with a prime of less than 3,072 bits: the fifth field is its size minus one.
SHORT = r"^\d+ \d+ \d+ \d+ (?:\d{1,3}|[12]\d{3}|30[0-6]\d|3070) .*\n"
# Set in the main file, because other tools read it there: option -> value.
MAIN = {"UsePAM": "yes", "StrictModes": "yes", "PermitRootLogin": "prohibit-password", "LogLevel": "VERBOSE"}
ALGORITHMS = {"Ciphers": "ciphers", "KexAlgorithms": "kex", "MACs": "macs"}
ACCESS = {
    "PasswordAuthentication": False, "PermitEmptyPasswords": False, "KbdInteractiveAuthentication": False,
    "PubkeyAuthentication": True, "MaxAuthTries": 4, "MaxSessions": 20, "LoginGraceTime": 30,
    "Banner": "/etc/issue.net",
}  # fmt: skip
SESSION = {
    "ClientAliveCountMax": 3, "X11Forwarding": False, "AllowAgentForwarding": False, "PermitTunnel": False,
    "PermitUserEnvironment": False, "PrintLastLog": False, "UseDNS": False,
}  # fmt: skip
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEfsk7zKp9vIFaWmYuVvqbJ0vDFVmCbHc1fNUtRnT7lq"
VARIABLES = {
    "ciphers": ["chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com", "aes128-gcm@openssh.com"],
    "kex": ["sntrup761x25519-sha512@openssh.com", "curve25519-sha256", "curve25519-sha256@libssh.org"],
    "macs": ["hmac-sha2-512-etm@openssh.com", "hmac-sha2-256-etm@openssh.com"],
    "host_keys": ["ed25519", "rsa"],
    "login_groups": ["sshusers", "sftponly"],
    "partners": ["acme", "initech"],
    "chroot": "/srv/sftp",
    "alive": 120,
}


@play(hosts="all", vars=VARIABLES)
def sshd(host: HostContext) -> list[Graph]:
    """Declare everything about SSH on one host."""
    server, client = package("openssh-server"), package("openssh-client")
    users = group("sshusers", system=True, members=["root"])
    main_mode = file(CONFIG, mode="0600", owner="root", group="root", requires=[server])
    lines = [
        line_in_file(CONFIG, line=f"{name} {value}", match=rf"^#?{name}\s", validate=CHECK, provides=f"sshd {name}",
                     requires=[server])
        for name, value in MAIN.items()
    ]  # fmt: skip
    banner = file("/etc/issue.net", template="sshd/issue.net.j2", mode="0644")
    keys = [
        ssh_key(_key(kind), algorithm=kind, bits=3072 if kind == "rsa" else None, requires=[server])
        for kind in host.vars.host_keys
    ]
    weak = [ssh_key(_key(kind), absent=True, requires=[server]) for kind in ("dsa", "ecdsa")]
    settings = [
        sshd_config(name, match=match, settings=values, requires=[server, banner, users, *keys])
        for name, match, values in _settings(host)
    ]
    limits = systemd_unit("ssh", drop_in="limits", sections={"Service": {"LimitNOFILE": 16384, "TasksMax": 2048}},
                          requires=[server])  # fmt: skip
    moduli = replace("/etc/ssh/moduli", pattern=SHORT, replacement="", requires=[server])
    pam = line_in_file(
        "/etc/pam.d/sshd",
        line="account  required     pam_access.so",
        match=r"^#?\s*account\s+required\s+pam_access\.so",
        requires=[server],
    )
    access = line_in_file("/etc/security/access.conf", line="-:ALL EXCEPT root (sshusers) (sftponly):ALL")
    environment = line_in_file("/etc/default/ssh", line="SSHD_OPTS=", match="^SSHD_OPTS=", requires=[server])
    client_conf = ssh_config(
        "10-hardened",
        settings={"Ciphers": ",".join(host.vars.ciphers), "MACs": ",".join(host.vars.macs), "HashKnownHosts": True,
                  "ForwardAgent": False},
        requires=[client],
    )  # fmt: skip
    known = known_host("*.example.test", key=KEY, authority=True)
    own_directory = directory("/root/.ssh", mode="0700")
    restart = [*lines, main_mode, *settings, limits, pam, environment, moduli, *keys, *weak]
    service_node = service("ssh", running=True, enabled=True, requires=[access], restart_on=restart)
    return [service_node, client_conf, known, own_directory, *_partners(host, users)]


def _settings(host: HostContext) -> list[tuple[str, str | None, dict[str, Any]]]:
    """Return the name, the criteria and the settings of each file in sshd_config.d."""
    algorithms = {name: ",".join(host.vars[key]) for name, key in ALGORITHMS.items()}
    keys = [_key(kind) for kind in host.vars.host_keys]
    sftp = {"ChrootDirectory": f"{host.vars.chroot}/%u", "ForceCommand": "internal-sftp -d /in",
            "AllowTcpForwarding": False, "PermitTTY": False}  # fmt: skip
    return [
        ("10-algorithms", None, {"HostKey": keys, **algorithms}),
        ("20-access", None, {**ACCESS, "AllowGroups": list(host.vars.login_groups)}),
        ("30-session", None, {**SESSION, "ClientAliveInterval": host.vars.alive}),
        ("40-sftp", "Group sftponly", sftp),
    ]


def _key(kind: str) -> str:
    return f"/etc/ssh/ssh_host_{kind}_key"


def _partners(host: HostContext, users: Graph) -> list[Graph]:
    only = group("sftponly", system=True)
    top = directory(host.vars.chroot, mode="0755")
    nodes: list[Graph] = []
    for name in host.vars.partners:
        home = directory(f"{host.vars.chroot}/{name}", mode="0755", owner="root", group="root", requires=[top])
        account = user(
            name, group="sftponly", home=f"{host.vars.chroot}/{name}", shell="/usr/sbin/nologin", create_home=False,
            password_hash=secret("partner-hash", env="CORPUS_PARTNER_HASH"), requires=[only, home],
        )  # fmt: skip
        nodes.append(
            directory(f"{host.vars.chroot}/{name}/in", mode="0750", owner=name, group="sftponly", requires=[account])
        )
        nodes.append(
            file(
                f"{host.vars.chroot}/{name}/README",
                template="sshd/partner.j2",
                vars={"partner": name},
                mode="0644",
                requires=[home],
            )
        )
    return nodes
