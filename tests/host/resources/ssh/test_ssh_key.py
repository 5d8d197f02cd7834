"""Key pairs of SSH on a booted host: they work, stay as they are, and are undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.text.test_text_edits import Site
from tests.lab import Host


@pytest.fixture
def site(booted: Host, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(booted, tmp_path, f"/srv/{request.node.name}")
    booted.run(["mkdir", "-p", found.place])
    yield found
    found.clean()


def pairs(site: Site) -> str:
    return f"""
  - ssh_key: {site.place}/ed25519
    comment: deploy@web1
    group: daemon
  - ssh_key: {site.place}/ecdsa
    algorithm: ecdsa
    bits: 384
  - ssh_key: {site.place}/rsa
    algorithm: rsa
    bits: 2048
"""


def test_key_pairs_come_true_stay_secret_and_are_undone(site: Site) -> None:
    """A public key that existed before its private key comes back."""
    site.write("rsa.pub", "former\n")
    planned = site.come_true(pairs(site))
    assert [action["op"] for action in planned[f"ssh_key:{site.place}/ed25519"]["actions"]] == ["create_pair"]
    for name, size, kind in (("ed25519", 256, "ED25519"), ("ecdsa", 384, "ECDSA"), ("rsa", 2048, "RSA")):
        told = site.host.run(["ssh-keygen", "-l", "-f", f"{site.place}/{name}.pub"]).stdout
        assert told.startswith(f"{size} ") and told.endswith(f" ({kind})\n")
        derived = site.host.run(["ssh-keygen", "-y", "-f", f"{site.place}/{name}"]).stdout.split()
        assert site.read(f"{name}.pub").split()[:2] == derived[:2]
    assert site.read("ed25519.pub").endswith(" deploy@web1\n")
    modes = ["stat", "-c", "%a %U:%G", f"{site.place}/ed25519", f"{site.place}/ed25519.pub", f"{site.place}/rsa"]
    assert site.host.run(modes).stdout == "600 root:daemon\n644 root:daemon\n600 root:root\n"

    secret = site.read("ed25519").splitlines()[2]
    said = [site.say(verb, "", "--json") for verb in ("plan", "apply", "verify", "destroy")]
    assert "PRIVATE KEY" not in "".join(ran.out + ran.err for ran in said)
    assert site.host.run(["grep", "-rlF", secret, "/var/lib/statecfg"], check=False).stdout == ""
    assert site.host.run(["sh", "-c", "ls -d /tmp/statecfg-* 2>/dev/null || true"]).stdout == ""
    assert not site.exists("ed25519") and not site.exists("ed25519.pub") and not site.exists("rsa")
    assert site.read("rsa.pub") == "former\n"


def test_an_existing_key_stays_and_gets_its_public_key_back(site: Site) -> None:
    site.come_true(pairs(site))
    before, public = site.read("ecdsa"), site.read("ecdsa.pub")
    site.host.path(f"{site.place}/ecdsa.pub").unlink()
    planned = site.come_true(pairs(site).replace("bits: 384", "bits: 521"))
    assert [action["op"] for action in planned[f"ssh_key:{site.place}/ecdsa"]["actions"]] == ["publish"]
    assert site.read("ecdsa") == before
    assert site.read("ecdsa.pub").split()[:2] == public.split()[:2]
