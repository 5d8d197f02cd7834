"""Files of apt, dpkg and debconf: the names of apt's lists, keys of repositories, holds, and stored answers."""

from __future__ import annotations

import base64

import pytest

from statecfg.remote.graph.nodetype import FACETS
from statecfg.remote.graph.wrong_values import Wrong
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.resources import debconf, package
from statecfg.resources.packages.repositories import apt_texts
from tests.each import each

# Sources, and how the names of their lists begin.
LISTS = {
    ("https://deb.debian.org/debian", "bookworm"): "deb.debian.org_debian_dists_bookworm_",
    ("https://deb.debian.org/debian-security/", "bookworm-security"): (
        "deb.debian.org_debian-security_dists_bookworm-security_"
    ),
    ("file:/srv/apt", "./"): "_srv_apt_._",
    ("file:///srv/apt", "./"): "_srv_apt_._",
}
ANSWERS = """\
Name: postfix/mailname
Template: postfix/mailname
Value: mail.example.org
Owners: postfix
Flags: seen
Variables:
 a = b

Name: postfix/note
Template: postfix/note
Value: two\\nlines
Owners: postfix

"""


@each(("uri", "suite"), LISTS)
def test_names_of_lists_are_those_of_apt(uri: str, suite: str) -> None:
    assert apt_texts.list_of(uri, suite) == LISTS[uri, suite]


def test_a_binary_key_becomes_text() -> None:
    data = bytes([0x98, 0x01, 0x04])
    lines = apt_texts.armored(data)
    assert (lines[0], lines[-1]) == (apt_texts.BEGIN, apt_texts.END)
    assert base64.b64decode(lines[2]) == data
    assert apt_texts.armored("\n".join(lines).encode()) == lines
    with pytest.raises(Wrong, match="not a public key"):
        apt_texts.armored(b"\x00\x01")


def test_holds_are_read_from_the_database_of_dpkg() -> None:
    assert package.name == "package"
    held = "Package: held\nStatus: hold ok installed\nVersion: 1.0\n\n"
    held += "Package: gone\nStatus: hold ok not-installed\n\nPackage: never\nStatus: unknown ok not-installed\n\n"
    status = f"{held}Package: free\nStatus: install ok installed\nVersion: 2\n"
    assert FACETS["packages"].load(MemoryMachine({"/var/lib/dpkg/status": status})) == {
        "held": {"version": "1.0", "held": True},
        "gone": {"state": "not-installed", "held": True},
        "free": {"version": "2"},
    }


def test_stored_answers_are_read_without_passwords() -> None:
    assert debconf.name == "debconf"
    passwords = "Name: slapd/password\nTemplate: slapd/password\nValue: s3cret\nFlags: seen\n"
    directory = "/var/cache/debconf/"
    machine = MemoryMachine({f"{directory}config.dat": ANSWERS, f"{directory}passwords.dat": passwords})
    assert FACETS["debconf"].load(machine) == {
        "postfix/mailname": {"value": "mail.example.org"},
        "postfix/note": {"value": "two\\nlines", "unseen": True},
        "slapd/password": {"value": "(a password)"},
    }
