"""A hardened SSH server: algorithms, access, banner, host keys, moduli, SFTP for partners, PAM, and the client.

sshd is restarted only if `sshd -t` accepts all of it.
"""

from __future__ import annotations

from statecfg import Graph, HostContext, play, secret
from statecfg.resources import command, directory, file, group, line_in_file, package, service, user

CONFIG = "/etc/ssh/sshd_config"
CHECK = ["sshd", "-t", "-f", "{}"]
DROPINS = {
    "10-algorithms": "sshd/algorithms.conf.j2",
    "20-access": "sshd/access.conf.j2",
    "30-session": "sshd/session.conf.j2",
    "40-sftp": "sshd/sftp.conf.j2",
}
# Set in the main file, because other tools read it there: option -> value.
MAIN = {"UsePAM": "yes", "StrictModes": "yes", "PermitRootLogin": "prohibit-password", "LogLevel": "VERBOSE"}
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
    dropins = directory("/etc/ssh/sshd_config.d", mode="0755", requires=[server])
    keys = [_host_key(kind, server) for kind in host.vars.host_keys]
    weak = [file(f"/etc/ssh/ssh_host_{kind}_key", absent=True, requires=[server]) for kind in ("dsa", "ecdsa")]
    weak += [file(f"/etc/ssh/ssh_host_{kind}_key.pub", absent=True, requires=[server]) for kind in ("dsa", "ecdsa")]
    settings = [
        file(f"/etc/ssh/sshd_config.d/{name}.conf", template=template, mode="0600", validate=CHECK,
             requires=[dropins, banner, users])
        for name, template in DROPINS.items()
    ]  # fmt: skip
    limits_dir = directory("/etc/systemd/system/ssh.service.d")
    limits = file(
        "/etc/systemd/system/ssh.service.d/limits.conf",
        content="[Service]\nLimitNOFILE=16384\nTasksMax=2048\n",
        mode="0644",
        requires=[limits_dir],
    )
    moduli = command(
        "short-moduli",
        shell="cp -p /etc/ssh/moduli /etc/ssh/moduli.all && "
        "awk '$5 >= 3071' /etc/ssh/moduli.all >/etc/ssh/moduli.new && "
        "chmod 0644 /etc/ssh/moduli.new && mv /etc/ssh/moduli.new /etc/ssh/moduli",
        onlyif="awk '$5 < 3071 && !/^#/ { found = 1 } END { exit !found }' /etc/ssh/moduli",
        undo=["mv", "/etc/ssh/moduli.all", "/etc/ssh/moduli"],
        effects={"files": ["/etc/ssh/moduli", "/etc/ssh/moduli.all"]},
        requires=[server],
    )
    pam = line_in_file(
        "/etc/pam.d/sshd",
        line="account  required     pam_access.so",
        match=r"^#?\s*account\s+required\s+pam_access\.so",
        requires=[server],
    )
    access = line_in_file("/etc/security/access.conf", line="-:ALL EXCEPT root (sshusers) (sftponly):ALL")
    environment = line_in_file("/etc/default/ssh", line="SSHD_OPTS=", match="^SSHD_OPTS=", requires=[server])
    client_conf = file("/etc/ssh/ssh_config.d/10-hardened.conf", template="sshd/client.conf.j2", mode="0644",
                       requires=[client])  # fmt: skip
    known = file("/etc/ssh/ssh_known_hosts", content="@cert-authority *.example.test " + _public(host), mode="0644")
    own_directory = directory("/root/.ssh", mode="0700")
    restart = [*lines, main_mode, *settings, limits, pam, environment, moduli, *keys, *weak]
    service_node = service("ssh", running=True, enabled=True, requires=[access], restart_on=restart)
    return [service_node, client_conf, known, own_directory, *_partners(host, users)]


def _host_key(kind: str, server: Graph) -> Graph:
    path = f"/etc/ssh/ssh_host_{kind}_key"
    size = ["-b", "3072"] if kind == "rsa" else []
    return command(
        f"host-key-{kind}",
        argv=["ssh-keygen", "-q", "-t", kind, *size, "-N", "", "-C", "", "-f", path],
        creates=path,
        undo=["rm", "-f", path, f"{path}.pub"],
        effects={"files": [path, f"{path}.pub"]},
        requires=[server],
    )


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


def _public(host: HostContext) -> str:
    return f"ssh-ed25519 {'AAAAC3NzaC1lZDI1NTE5AAAAIHVzZWQgb25seSBpbiB0ZXN0cyBvZiBzdGF0ZWNmZyE'} ca for {host.name}\n"
