"""Cases for the node types that check a host, and for access to it and its servers (see `truth`)."""

from __future__ import annotations

from statecfg.graph.graph import Graph
from statecfg.resources import (
    ca_certificate,
    directory,
    http_request,
    pam,
    ssh_config,
    ssh_key,
    sshd_config,
    tls_certificate,
    tls_key,
)
from tests.host.resources import things
from tests.host.resources.truth_case import Case
from tests.lab import Host

PORT = 8320
URL = f"http://127.0.0.1:{PORT}"


def _http_request(root: str, requires: list[Graph]) -> list[Graph]:
    headers = {"Authorization": f"Bearer {things.WORD}"}
    first = http_request(
        "first", url=f"{URL}/first", method="PUT", body="one", headers=headers, changes=True,
        unless={"url": f"{URL}/first", "contains": "^one$"}, requires=requires,
    )  # fmt: skip
    place = directory(root, requires=requires)
    return [
        http_request("nothing", url=f"{URL}/nothing", status=[404], requires=requires),
        http_request("readable", url=f"{URL}/first", contains="^one$", requires=[first]),
        http_request(
            "second", url=f"{URL}/second", method="PUT", headers=headers, changes=True, when_triggered=True,
            restart_on=[place],
        ),
    ]  # fmt: skip


def _http_request_drift(host: Host, root: str) -> None:
    things.delete(host, PORT, "/first")


def _sshd_config(root: str, requires: list[Graph]) -> list[Graph]:
    return [
        sshd_config("60-truth", settings={"MaxAuthTries": 3, "AcceptEnv": ["A", "B"]}, requires=requires),
        sshd_config("61-truth", match="User nobody", settings={"PermitTTY": False}, requires=requires),
        sshd_config("62-truth", absent=True, requires=requires),
    ]


def _sshd_config_bare(host: Host, root: str) -> None:
    main = host.read("/etc/ssh/sshd_config")
    host.write("/etc/ssh/sshd_config", f"Include /etc/ssh/sshd_config.d/*.conf\n{main}")
    host.run(["mkdir", "-p", "/etc/ssh/sshd_config.d"])


def _sshd_config_drift(host: Host, root: str) -> None:
    host.write("/etc/ssh/sshd_config.d/60-truth.conf", "MaxAuthTries 30\n")
    host.write("/etc/ssh/sshd_config.d/62-truth.conf", "")


def _ssh_config(root: str, requires: list[Graph]) -> list[Graph]:
    return [ssh_config("truth", host="git.example.org", settings={"User": "git", "Port": 2200}, requires=requires)]


def _ssh_config_bare(host: Host, root: str) -> None:
    host.write("/etc/ssh/ssh_config", "Include /etc/ssh/ssh_config.d/*.conf\nHost *\n")
    host.run(["mkdir", "-p", "/etc/ssh/ssh_config.d"])


def _ssh_config_drift(host: Host, root: str) -> None:
    host.path("/etc/ssh/ssh_config.d/truth.conf").chmod(0o600)


CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBZzCCAQ6gAwIBAgIUEOVeN0M1A6FffMjpPEQN3qReTXcwCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHU2hvcCBDQTAeFw0yNjExMjMwODMzMjhaFw0yNjEyMDMwODMz
MjhaMBIxEDAOBgNVBAMMB1Nob3AgQ0EwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQhMMFcRAcCIFnFJaeNbkNdLgye6+HxtAfxi+CTH/g3R/A/dUmeE1fGTCB6bPgv
+zNj2fmpTPHBBKPcqiDniviSo0IwQDAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB
/wQEAwIBBjAdBgNVHQ4EFgQUBgi0nmy1TcMAsf4d7gG13D6hkMQwCgYIKoZIzj0E
AwIDRwAwRAIgYAYlKdJfddNsWe4BpxAMheZdURO1FK3HCoP0AxUmNscCIGI374m6
+5mBFoYxt5Cn1x/0rx8A2t2WBuYYzqLlkt5I
-----END CERTIFICATE-----
"""


def _ca_certificate(root: str, requires: list[Graph]) -> list[Graph]:
    return [
        ca_certificate("truth", content=CERTIFICATE, requires=requires),
        ca_certificate("other", absent=True, requires=requires),
    ]


def _ca_certificate_drift(host: Host, root: str) -> None:
    host.write("/usr/local/share/ca-certificates/truth.crt", "by hand\n")


def _tls_key(root: str, requires: list[Graph]) -> list[Graph]:
    place = directory(root, requires=requires)
    return [tls_key(f"{root}/{name}.key", algorithm=name, requires=[place]) for name in ("ec", "ed25519")]


def _tls_key_drift(host: Host, root: str) -> None:
    host.path(f"{root}/ec.key").unlink()
    host.path(f"{root}/ed25519.key").chmod(0o644)


def _ssh_key(root: str, requires: list[Graph]) -> list[Graph]:
    place = directory(root, requires=requires)
    return [ssh_key(f"{root}/{name}", algorithm=name, requires=[place]) for name in ("ed25519", "ecdsa", "rsa")]


def _ssh_key_drift(host: Host, root: str) -> None:
    host.path(f"{root}/ed25519").unlink()
    host.path(f"{root}/ecdsa.pub").unlink()
    host.path(f"{root}/rsa").chmod(0o644)


def _tls_certificate(root: str, requires: list[Graph]) -> list[Graph]:
    key = tls_key(f"{root}/a.key", requires=[directory(root, requires=requires)])
    return [tls_certificate(f"{root}/a.pem", key=f"{root}/a.key", names=["a.example.org"], requires=[key])]


def _tls_certificate_drift(host: Host, root: str) -> None:
    host.write(f"{root}/a.pem", "by hand\n")


def _pam(root: str, requires: list[Graph]) -> list[Graph]:
    session = {"service": "sshd", "module_type": "session"}
    return [
        pam("limits", module="pam_limits.so", control="required", arguments=["noaudit"], requires=requires, **session),
        pam("mail", module="pam_mail.so", absent=True, requires=requires, **session),
        pam("delay", service="su", module_type="auth", module="pam_faildelay.so", control="optional",
            arguments=["delay=1000"], before="pam_rootok.so", requires=requires),
    ]  # fmt: skip


def _pam_drift(host: Host, root: str) -> None:
    host.write("/etc/pam.d/sshd", host.read("/etc/pam.d/sshd") + "session optional pam_mail.so\n")
    host.write("/etc/pam.d/su", host.read("/etc/pam.d/su").replace("delay=1000", "delay=5"))


ACCESS = [
    Case("pam", _pam, _pam_drift),
    Case("ca_certificate", _ca_certificate, _ca_certificate_drift),
    Case("tls_key", _tls_key, _tls_key_drift),
    Case("tls_certificate", _tls_certificate, _tls_certificate_drift),
    Case("sshd_config", _sshd_config, _sshd_config_drift, _sshd_config_bare),
    Case("ssh_key", _ssh_key, _ssh_key_drift),
    Case("ssh_config", _ssh_config, _ssh_config_drift, _ssh_config_bare),
    Case("http_request", _http_request, _http_request_drift, lambda host, root: things.start(host, "/srv/http", PORT)),
]
