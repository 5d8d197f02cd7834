"""Keys, certificates and trusted authorities on a booted host: they come true, are renewed and are undone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host

BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
REQUEST = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


@pytest.fixture
def site(booted: Host, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(booted, tmp_path, f"/srv/{request.node.name}")
    booted.run(["mkdir", "-p", found.place])
    yield found
    found.clean()


def authority(site: Site) -> str:
    """Return an authority, and a server's certificate that it signs."""
    return f"""
  - tls_key: {site.place}/ca.key
  - tls_certificate: {site.place}/ca.pem
    key: {site.place}/ca.key
    common_name: Test CA
    is_authority: true
    days: 3650
    requires: ["tls_key:{site.place}/ca.key"]
  - tls_key: {site.place}/shop.key
    algorithm: rsa
    bits: 2048
    mode: "0640"
    group: daemon
  - tls_certificate: {site.place}/shop.pem
    key: {site.place}/shop.key
    names: [shop.example.org, "*.example.org", 127.0.0.1, "2001:db8::7"]
    authority: {site.place}/ca.pem
    authority_key: {site.place}/ca.key
    requires: ["tls_key:{site.place}/shop.key", "tls_certificate:{site.place}/ca.pem"]
"""


def shown(site: Site, name: str, *options: str) -> str:
    return site.host.run(["openssl", "x509", "-in", f"{site.place}/{name}", "-noout", *options]).stdout


def test_an_authority_signs_a_certificate_that_comes_true_and_is_undone(site: Site) -> None:
    """No report contains a private key. The keys of a destroyed playbook are gone."""
    site.write("shop.pem", "former\n")
    planned = site.come_true(authority(site))
    assert planned[f"tls_certificate:{site.place}/shop.pem"]["actions"][0]["op"] == "issue"
    verify = ["openssl", "verify", "-CAfile", f"{site.place}/ca.pem", f"{site.place}/shop.pem"]
    assert site.host.run(verify).stdout.endswith(": OK\n")
    assert site.host.run(["stat", "-c", "%a %U:%G", f"{site.place}/shop.key"]).stdout == "640 root:daemon\n"
    assert site.host.run(["stat", "-c", "%a", f"{site.place}/ca.key"]).stdout == "600\n"
    assert shown(site, "shop.pem", "-serial").startswith("serial=")
    secret = site.read("shop.key").splitlines()[1]
    said = [site.say(verb, "", "--json") for verb in ("plan", "apply", "verify", "destroy")]
    assert "PRIVATE KEY" not in "".join(ran.out + ran.err for ran in said)
    assert site.host.run(["grep", "-rlF", secret, "/var/lib/statecfg"], check=False).stdout == ""
    assert site.read("shop.pem") == "former\n"
    assert not site.exists("shop.key") and not site.exists("ca.key") and not site.exists("ca.pem")


def test_a_certificate_is_renewed_before_it_expires_and_after_other_changes(site: Site) -> None:
    node = f"""
  - tls_key: {site.place}/a.key
  - tls_certificate: {site.place}/a.pem
    key: {site.place}/a.key
    names: [a.example.org]
    requires: ["tls_key:{site.place}/a.key"]
"""
    name = f"tls_certificate:{site.place}/a.pem"
    site.come_true(node)
    first = shown(site, "a.pem", "-serial")
    # The same certificate, but valid for 20 days.
    config = f"{site.place}/config"
    site.host.write(config, "[req]\nprompt=no\ndistinguished_name=dn\nx509_extensions=e\n[dn]\nCN=a.example.org\n"
                            "[e]\nbasicConstraints=critical,CA:FALSE\nsubjectAltName=DNS:a.example.org\n")  # fmt: skip
    old = ["openssl", "req", "-x509", "-new", "-key", f"{site.place}/a.key", "-config", config]
    site.host.run([*old, "-days", "20", "-out", f"{site.place}/a.pem"])
    planned = site.come_true(node)
    assert planned[name]["actions"][0]["args"]["reason"] == "the certificate expires within 30 days"
    assert shown(site, "a.pem", "-serial") != first
    planned = site.come_true(node.replace("[a.example.org]", "[a.example.org, b.example.org]"))
    assert "other names" in planned[name]["actions"][0]["args"]["reason"]
    site.host.run(["rm", f"{site.place}/a.key"])
    planned = nodes(site.report("plan"))
    assert planned[name]["known_after"] == f"tls_key:{site.place}/a.key"
    applied = nodes(site.report("apply"))
    assert applied[name]["actions"][0]["args"]["reason"] == "the certificate belongs to another key"
    assert {node["outcome"] for node in nodes(site.report("plan")).values()} == {"unchanged"}


def test_an_existing_key_is_kept(site: Site) -> None:
    site.host.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", f"{site.place}/old.key"])
    site.host.run(["chmod", "0644", f"{site.place}/old.key"])
    before = site.read("old.key")
    site.come_true(f"  - tls_key: {site.place}/old.key\n")
    assert site.host.path(f"{site.place}/old.key").stat().st_mode & 0o777 == 0o600
    site.say("destroy")
    assert site.read("old.key") == before
    assert site.host.path(f"{site.place}/old.key").stat().st_mode & 0o777 == 0o644
    site.write("old.key", "not a key\n")
    failed = nodes(site.report("plan", f"  - tls_key: {site.place}/old.key\n", code=1))
    assert "is not a private key" in failed[f"tls_key:{site.place}/old.key"]["reason"]


def trusts(site: Site) -> bool:
    """Return whether programs of the host trust the authority of the test."""
    argv = ["openssl", "verify", "-no-CApath", "-no-CAstore", "-CAfile", BUNDLE, f"{site.place}/ours.pem"]
    return site.host.run(argv, check=False).returncode == 0


def test_a_trusted_authority_comes_true_and_is_undone(site: Site) -> None:
    subject = ["-subj", "/CN=ours", "-days", "9"]
    out = ["-keyout", str(site.directory / "key"), "-out", str(site.directory / "ours.pem")]
    subprocess.run([*REQUEST, *out, *subject], check=True, capture_output=True)
    site.write("ours.pem", (site.directory / "ours.pem").read_text())
    before = site.host.run(["sha256sum", BUNDLE]).stdout
    node = "  - ca_certificate: ours\n    source: ours.pem\n"
    site.come_true(node)
    assert trusts(site)
    # The file stays, but the bundle lost it: only the bundle is made again.
    bundle = site.host.read(BUNDLE)
    site.host.write(BUNDLE, bundle.replace(site.read("ours.pem"), ""))
    assert not trusts(site)
    planned = site.come_true(node)
    assert [action["op"] for action in planned["ca_certificate:ours"]["actions"]] == ["update_trust"]
    assert trusts(site)
    site.say("destroy")
    assert not trusts(site)
    assert site.host.run(["sha256sum", BUNDLE]).stdout == before
    assert not site.host.path("/etc/ssl/certs/ours.pem").is_symlink()
    wrong = "  - ca_certificate: ours\n    source: wrong.pem\n"
    body = "AAAA\n"
    (site.directory / "wrong.pem").write_text(f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n")
    failed = nodes(site.report("apply", wrong, code=1))["ca_certificate:ours"]
    assert "openssl rejects the new content" in failed["reason"]
