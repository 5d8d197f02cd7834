"""The node types for apt on a real host: repositories with keys, pins, answers, holds, replacements and upgrades."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import lab
from tests.host.resources.packages.test_packages_together import Site

ASKS = """#!/bin/sh
set -e
. /usr/share/debconf/confmodule
db_get asker/color
echo "$RET" > /var/tmp/asker
db_get asker/password
printf '%s' "$RET" | sha256sum > /var/tmp/asker-password
db_set asker/password ""
"""
FORGETS = '#!/bin/sh\nset -e\n. /usr/share/debconf/confmodule\nif [ "$1" = purge ]; then db_purge; fi\n'
TEMPLATES = """\
Template: asker/color
Type: select
Choices: red, blue
Default: red
Description: Which color?

Template: asker/password
Type: password
Description: Which password?
"""
NAMES = ["plain", "strange", "asker", "mail-a", "mail-b", "needs-mail", "extra", "wants-extra"]


@pytest.fixture(scope="module")
def light(light_host: lab.Host, tmp_path_factory: pytest.TempPathFactory) -> lab.Host:
    """Give a light host with a repository, and a second one that it does not use, signed, with newer versions."""
    if not shutil.which("gpg") or not shutil.which("dpkg-deb"):
        pytest.skip("not run on this machine: there is no gpg or no dpkg-deb (Debian: gnupg, dpkg)")
    first = lab.AptRepository(tmp_path_factory.mktemp("first"))
    second = lab.AptRepository(tmp_path_factory.mktemp("second"))
    first.add("plain", "1.0")
    second.add("plain", "2.0")
    second.add("strange", "1.0")
    second.add("mail-a", "2.0")
    second.add("extra", "2.0")
    scripts = {"postinst": ASKS, "postrm": FORGETS}
    first.add("asker", "1.0", depends="debconf", scripts=scripts, more={"templates": TEMPLATES})
    for name, other in (("mail-a", "mail-b"), ("mail-b", "mail-a")):
        first.add(name, "1.0", conflicts=other, provides="mail")
    first.add("needs-mail", "1.0", depends="mail-a | mail")
    first.add("extra", "1.0")
    first.add("wants-extra", "1.0", recommends="extra")
    first.use(light_host)
    signed(second.directory, tmp_path_factory.mktemp("gpg"))
    shutil.copytree(second.directory, light_host.path("/srv/second"))
    return light_host


def signed(repository: Path, home: Path) -> None:
    """Sign a repository, and put the public key next to it, as text and binary."""
    home.chmod(0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--yes", "--passphrase", ""]
    try:
        _sign(repository, gpg)
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "gpg-agent"], check=True)


def _sign(repository: Path, gpg: list[str]) -> None:
    packages = (repository / "Packages").read_bytes()
    release = (
        f"Suite: next\nCodename: next\nSHA256:\n {hashlib.sha256(packages).hexdigest()} {len(packages)} Packages\n"
    )
    (repository / "Release").write_text(f"Date: Mon, 23 Nov 2026 00:00:00 UTC\n{release}")
    subprocess.run([*gpg, "--quick-gen-key", "Tests <tests@example.org>", "ed25519", "sign", "never"], check=True)
    for name, armor in (("key.asc", ["--armor"]), ("key.gpg", [])):
        subprocess.run([*gpg, *armor, "--output", str(repository / name), "--export"], check=True)
    subprocess.run(
        [*gpg, "--clearsign", "--output", str(repository / "InRelease"), str(repository / "Release")], check=True
    )


@pytest.fixture
def site(light: lab.Host, tmp_path: Path) -> Iterator[Site]:
    """Give a project for the host, and check that packages and settings of apt are as before after the test."""
    site = Site(light, tmp_path)
    (tmp_path / "files").mkdir()
    for name in ("key.asc", "key.gpg"):
        shutil.copy(light.path(f"/srv/second/{name}"), tmp_path / "files" / name)
    before = (site.packages(), settings(light))
    yield site
    after = (site.packages(), settings(light))
    light.run(["sh", "-c", f"apt-mark unhold {' '.join(NAMES)}; apt-get -qy purge {' '.join(NAMES)}; true"])
    light.run(["sh", "-c", "rm -rf /var/lib/statecfg /var/tmp/asker*"])
    assert after == before


def settings(host: lab.Host) -> str:
    """Return the files with which apt and debconf are configured, and the packages on hold."""
    show = "cd /etc/apt && find sources.list.d preferences.d -type f | sort | xargs grep -r . ; apt-mark showhold"
    answers = "; debconf-show asker"
    return host.run(["sh", "-c", show + answers]).stdout


SECOND = 'apt_repository: second, uris: ["file:/srv/second"], suites: [./], key_source: %s'


@pytest.mark.parametrize("key", ["key.asc", "key.gpg"])
def test_a_signed_repository_is_fetched_and_used_and_removed(site: Site, key: str) -> None:
    playbook = site.write("second.yml", SECOND % key, "package: strange")
    planned = site.report("plan", playbook)
    assert [action["op"] for action in planned["apt_repository:second"]["actions"]] == ["write", "fetch_lists"]
    applied = site.report("apply", playbook, "--yes")
    assert {node["outcome"] for node in applied.values()} == {"changed"}
    assert site.has("strange") == ["strange"]
    assert {node["outcome"] for node in site.report("apply", playbook, "--yes").values()} == {"unchanged"}
    site.host.run(["sh", "-c", "rm /var/lib/apt/lists/*second*"])
    assert [action["op"] for action in site.report("plan", playbook)["apt_repository:second"]["actions"]] == [
        "fetch_lists"
    ]
    site("destroy", playbook, "--yes")
    assert site.has("strange") == []


def test_a_repository_with_a_wrong_signature_fails(site: Site) -> None:
    """The file stays, so the next run tries to fetch the lists again; the undo removes it."""
    site.host.run(["sh", "-c", "cp /srv/second/InRelease /srv/kept; sed -i s/next/text/ /srv/second/InRelease"])
    try:
        playbook = site.write("second.yml", SECOND % "key.asc")
        found = site.report("apply", playbook, "--yes", code=1)["apt_repository:second"]
        assert found["outcome"] == "failed"
        assert found["reason"].startswith("fetch_lists:")
    finally:
        site.host.run(["mv", "/srv/kept", "/srv/second/InRelease"])
    again = site.report("apply", playbook, "--yes")["apt_repository:second"]
    assert [action["op"] for action in again["actions"]] == ["fetch_lists"]
    site("destroy", playbook, "--yes")


def test_a_pin_keeps_the_older_version(site: Site) -> None:
    pin = "apt_pin: old, packages: [plain], pin: version 1.*, priority: 990"
    playbook = site.write("pin.yml", SECOND % "key.asc", pin, "package: plain")
    site("apply", playbook, "--yes")
    assert any(line.startswith("plain 1.0") for line in site.packages())
    newer = site.write("pin.yml", SECOND % "key.asc", 'package: plain, version: "2.*", hold: true')
    site("apply", newer, "--yes", "--prune")
    assert any(line.startswith("plain 2.0 hi") for line in site.packages())
    assert {node["outcome"] for node in site.report("plan", newer).values()} == {"unchanged"}
    other = site.write("pin.yml", SECOND % "key.asc", 'package: plain, version: "1.*", hold: true')
    report = site.report("apply", other, "--yes")["package:plain"]
    assert [action["op"] for action in report["actions"]] == ["install", "hold"]
    assert any(line.startswith("plain 1.0 hi") for line in site.packages())
    site("destroy", other, "--yes")


def test_a_hold_is_restored(site: Site) -> None:
    """Somebody installed a package and put it on hold. The node releases and upgrades it; undo restores both."""
    site.host.run(["sh", "-c", "apt-get -qy install plain && apt-mark hold plain"])
    before = site.packages()
    refused = site.write("plain.yml", 'package: plain, version: "2.0"')
    assert "plain is on hold" in site.report("plan", refused, code=1)["package:plain"]["reason"]
    playbook = site.write("plain.yml", SECOND % "key.asc", 'package: plain, version: "2.0", hold: false')
    site("apply", playbook, "--yes")
    assert any(line.startswith("plain 2.0 ii") for line in site.packages())
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    site.host.run(["sh", "-c", "apt-mark unhold plain && apt-get -qy purge plain"])


def test_answers_are_given_before_the_installation_and_forgotten_with_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKER", "s3cret words")
    answers = "debconf: asker, answers: {asker/color: blue}, passwords: {asker/password: !secret {env: ASKER}}"
    playbook = site.write("asker.yml", answers, "package: asker")
    planned = site("plan", playbook)
    assert "s3cret" not in planned.out
    assert "blue" in planned.out
    applied = site("apply", playbook, "--yes")
    assert "s3cret" not in applied.out
    assert site.host.read("/var/tmp/asker") == "blue\n"
    digest = subprocess.run(["sha256sum"], input=b"s3cret words", capture_output=True, check=True).stdout.decode()
    assert site.host.read("/var/tmp/asker-password") == digest
    assert {node["outcome"] for node in site.report("apply", playbook, "--yes").values()} == {"unchanged"}
    site.host.run(["sh", "-c", "echo SET asker/color red | debconf-communicate asker"])
    drift = site.report("plan", playbook)["debconf:asker"]
    assert drift["changes"][0]["before"] == "red"
    site("destroy", playbook, "--yes")
    assert "asker/" not in site.host.read("/var/cache/debconf/config.dat")


def test_a_password_alone_is_stored_as_it_is(site: Site) -> None:
    """debconf knows no escapes in its input."""
    words = r"answers: {asker/color: 'a\b'}, passwords: {asker/password: 'c\d'}"
    playbook = site.write("asker.yml", f"debconf: asker, {words}")
    site("apply", playbook, "--yes")
    ask = r"printf 'GET asker/color\nGET asker/password\n' | debconf-communicate asker"
    assert site.host.run(["sh", "-c", ask]).stdout == "0 a\\b\n0 c\\d\n"
    assert {node["outcome"] for node in site.report("apply", playbook, "--yes").values()} == {"unchanged"}
    site("destroy", playbook, "--yes")


def test_former_answers_are_restored(site: Site) -> None:
    site.host.run(["sh", "-c", "echo asker asker/color string green | debconf-set-selections"])
    try:
        playbook = site.write("asker.yml", "debconf: asker, answers: {asker/color: blue, asker/size: [a, b]}")
        site("apply", playbook, "--yes")
        ask = "echo GET asker/color | debconf-communicate asker; grep -c asker/size /var/cache/debconf/config.dat"
        show = ["sh", "-c", ask]
        assert site.host.run(show).stdout == "0 blue\n2\n"
        site("destroy", playbook, "--yes")
        assert site.host.run(["sh", "-c", "echo GET asker/color | debconf-communicate asker"]).stdout == "0 green\n"
    finally:
        site.host.run(["sh", "-c", "echo UNREGISTER asker/color | debconf-communicate asker"])


def test_a_conflicting_package_is_replaced_and_comes_back(site: Site) -> None:
    """Something needs one of two packages that exclude each other. Nothing else is removed, there and back."""
    site.host.run(["apt-get", "-qy", "install", "needs-mail"])
    before = site.packages()
    refused = site.write("mail.yml", "package: mail-b")
    assert "mail-a" in site.report("plan", refused, code=1)["package:mail-b"]["reason"]
    playbook = site.write("mail.yml", "package: mail-b, replaces: [mail-a]")
    planned = site.report("plan", playbook)["package:mail-b"]
    applied = site.report("apply", playbook, "--yes")["package:mail-b"]
    assert applied["changes"] == planned["changes"]
    assert site.has("mail-a", "mail-b", "needs-mail") == ["mail-b", "needs-mail"]
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    site.host.run(["apt-get", "-qy", "purge", "needs-mail", "mail-a"])


def test_recommended_packages_are_left_out(site: Site) -> None:
    without = site.write("extra.yml", "package: wants-extra, recommends: false")
    site("apply", without, "--yes")
    assert site.has("extra", "wants-extra") == ["wants-extra"]
    site("destroy", without, "--yes")
    with_them = site.write("extra.yml", "package: wants-extra, recommends: true")
    planned = site.report("plan", with_them)["package:wants-extra"]
    assert planned["actions"][0]["args"]["packages"][0]["others"] == {"extra": "1.0"}, json.dumps(planned)
    site("apply", with_them, "--yes")
    assert site.has("extra", "wants-extra") == ["extra", "wants-extra"]
    site("destroy", with_them, "--yes")


def test_all_packages_are_upgraded_and_downgraded_again(site: Site) -> None:
    site.host.run(["apt-get", "-qy", "install", "plain"])
    before = site.packages()
    site("apply", site.write("second.yml", SECOND % "key.asc"), "--yes")
    alone = site.write("all.yml", "package_upgrade: all")
    planned = site.report("plan", alone)["package_upgrade:all"]
    assert [(change["object"], change["before"], change["after"]) for change in planned["changes"]] == [
        ("package plain", "1.0", "2.0")
    ]
    applied = site.report("apply", alone, "--yes")["package_upgrade:all"]
    assert applied["changes"] == planned["changes"]
    assert site.report("apply", alone, "--yes")["package_upgrade:all"]["outcome"] == "unchanged"
    site("destroy", alone, "--yes")
    assert site.packages() == before
    site("destroy", site.directory / "second.yml", "--yes")
    site.host.run(["apt-get", "-qy", "purge", "plain"])


def test_destroy_keeps_what_others_upgraded(site: Site) -> None:
    """Others upgrade a package between two applies, and another one after the last. Each apply upgrades one package."""
    site.host.run(["apt-get", "-qy", "install", "plain", "extra", "mail-a"])
    site("apply", site.write("second.yml", SECOND % "key.asc"), "--yes")
    site.host.run(["apt-mark", "hold", "extra", "mail-a"])
    everything = site.write("all.yml", "package_upgrade: all")
    site("apply", everything, "--yes")
    site.host.run(["sh", "-c", "apt-mark unhold extra mail-a && apt-get -qy install extra"])
    found = site.report("apply", everything, "--yes")["package_upgrade:all"]
    assert [change["object"] for change in found["changes"]] == ["package mail-a"]
    removal = site.report("destroy", everything, "--yes")["package_upgrade:all"]
    assert removal["leaves"] == ["extra (2.0) stays: the ledger has no record that this node upgraded it"]
    found = {line.split()[0]: line.split()[1] for line in site.packages()}
    assert {name: found[name] for name in ("plain", "extra", "mail-a")} == {
        "plain": "1.0",
        "extra": "2.0",
        "mail-a": "1.0",
    }
    site.host.run(["apt-get", "-qy", "purge", "plain", "extra", "mail-a"])
    site("destroy", site.directory / "second.yml", "--yes")


def test_a_repository_that_another_file_defines_differently(site: Site) -> None:
    """apt would refuse all sources. The plan names the other file; what it can't see is taken back."""
    other = "/etc/apt/sources.list.d/other.list"
    site.host.write(other, "deb [trusted=yes] file:/srv/second ./\n")
    repository = 'apt_repository: second, uris: ["file:/srv/second/"], suites: ["./"]'
    wrong = site.write("site.yml", f"{repository}, trusted: false")
    assert f"{other}:1 defines" in site.report("plan", wrong, code=1)["apt_repository:second"]["reason"]
    hidden = site.write("site.yml", f'{repository}, trusted: true, settings: {{Check-Valid-Until: "no"}}')
    failed = site.report("apply", hidden, "--yes", code=1)["apt_repository:second"]
    assert "apt refuses the new configuration, and the former one is restored" in failed["reason"]
    assert "Check-Valid-Until" in failed["reason"]
    assert not site.host.path("/etc/apt/sources.list.d/second.sources").exists()
    site.host.run(["apt-get", "indextargets"])
    site.host.run(["rm", other])
