"""Downloads from HTTPS servers in the test: they come true, are verified and undone, and show no secret."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.resources.text.test_text_edits import SECRET, Site, nodes
from tests.lab import Host
from tests.lab.web import Web, serving


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("web")) as found:
        yield found


@pytest.fixture
def site(light_host: Host, tmp_path: Path, web: Web, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(light_host, tmp_path, f"/srv/{request.node.name}")
    found.write("ca.pem", web.authority_text)
    web.asked.clear()
    yield found
    found.say("destroy", code=None)


def download(site: Site, name: str, url: str, *more: str) -> str:
    lines = [f"url: {url}", f"ca: {site.place}/ca.pem", *more]
    return f"  - download: {site.place}/{name}\n" + "".join(f"    {line}\n" for line in lines)


def refused(site: Site, resources: str) -> str:
    """Return why an apply of one node fails."""
    (node,) = nodes(site.report("apply", resources, code=1)).values()
    return str(node["reason"])


def test_downloads_come_true_stay_and_are_undone(site: Site, web: Web) -> None:
    checksum = web.put("/tool", "one\n" * 100_000)
    web.put("/key", "key\n")
    site.write("tool", "former\n")
    both = download(site, "tool", f"{web.url}/tool", f"checksum: {checksum}", 'mode: "0755"', "backup: .old")
    both += download(site, "key", f"{web.url}/key", 'validate: [grep, -q, key, "{}"]')
    both += f"  - line_in_file: {site.place}/key\n    line: more\n    requires: [download:{site.place}/key]\n"
    both = both.replace("line: more\n", "line: more\n    provides: more\n")
    planned = nodes(site.report("plan", both))
    assert web.asked == []
    assert planned["more"]["known_after"] == f"download:{site.place}/key"
    changes = planned[f"download:{site.place}/tool"]["changes"]
    after = {change["object"]: change["after"] for change in changes if change["field"] == "content"}
    assert after[f"{site.place}/tool"] == f"{checksum} from {web.url}/tool"
    site.report("apply")
    assert sorted(web.asked) == ["/key", "/tool"]
    assert site.read("tool") == "one\n" * 100_000 and site.read("key") == "key\nmore\n"
    assert site.read("tool.old") == "former\n"
    assert site.host.path(f"{site.place}/tool").stat().st_mode & 0o7777 == 0o755
    assert {node["outcome"] for node in nodes(site.report("apply")).values()} == {"unchanged"}
    site.write("tool", "drifted\n")
    site.come_true(both)
    assert web.asked.count("/tool") == 2
    site.say("destroy")
    assert site.read("tool") == "former\n"
    assert not site.exists("key") and not site.exists("tool.old")


def test_nothing_is_installed_from_a_download_that_is_wrong(site: Site, web: Web) -> None:
    web.put("/tool", "one\n")
    web.put("/short", "one\n")
    wrong = "sha256:" + "0" * 64
    assert "/tool has the checksum sha256:" in refused(
        site, download(site, "f", f"{web.url}/tool", f"checksum: {wrong}")
    )
    assert "the server sent 4 of 11 bytes" in refused(site, download(site, "f", f"{web.url}/short"))
    assert "the server answers 404 Not Found" in refused(site, download(site, "f", f"{web.url}/no"))
    assert "which is not secure" in refused(site, download(site, "f", f"{web.url}/to/tool"))
    untrusted = download(site, "f", f"{web.url}/tool").replace(f"    ca: {site.place}/ca.pem\n", "")
    assert "ca names a file with the certificates" in refused(site, untrusted)
    assert "false rejects the new content" in refused(
        site, download(site, "f", f"{web.url}/tool", "validate: ['false', '{}']")
    )
    assert sorted(path.name for path in site.host.path(site.place).iterdir()) == ["ca.pem"]


def test_a_proxy_fetches_and_a_header_with_a_secret_is_not_shown(site: Site, web: Web) -> None:
    checksum = web.put("/tool", "one\n")
    web.put("/private", "two\n")
    proxied = download(site, "tool", "http://192.0.2.1/tool", f"checksum: {checksum}", f"proxy: {web.plain}")
    private = download(site, "private", f"{web.url}/private", "headers: {Authorization: 'Bearer {{ word }}'}")
    said = [site.say(verb, proxied + private, "--json") for verb in ("plan", "apply", "verify")]
    assert "http://192.0.2.1/tool" in web.asked
    assert site.read("tool") == "one\n" and site.read("private") == "two\n"
    assert SECRET not in "".join(ran.out + ran.err for ran in said)
    assert site.host.run(["grep", "-rl", SECRET, "/var/lib/statecfg"], check=False).stdout == ""


def test_an_archive_that_is_downloaded_is_unpacked_and_undone(site: Site, web: Web, tmp_path: Path) -> None:
    """The files are known after the download. A newer archive replaces them, and undo removes all of them."""
    path, archives = f"{site.place}/tool", []
    for version in ("1", "2"):
        with zipfile.ZipFile(tmp_path / version, "w") as packed:
            packed.writestr("tool/version", f"{version}\n")
            packed.writestr(f"tool/lib/{version}.txt", "x\n")
        checksum = web.put(f"/{version}.zip", (tmp_path / version).read_bytes())
        unpacked = f"  - archive: {path}\n    host_source: {path}.zip\n    strip_components: 1\n"
        unpacked += f"    requires: [download:{path}.zip, directory:{path}]\n"
        fetched = download(site, "tool.zip", f"{web.url}/{version}.zip", f"checksum: {checksum}")
        archives.append(f"  - directory: {path}\n{fetched}{unpacked}")
    site.write("tool/lib/mine", "mine\n")
    planned = nodes(site.report("plan", archives[0]))
    assert planned[f"archive:{path}"]["known_after"] == f"download:{path}.zip"
    for number in (0, 1):
        site.report("apply", archives[number])
        assert {node["outcome"] for node in nodes(site.report("plan")).values()} == {"unchanged"}
    assert site.read("tool/version") == "2\n"
    assert site.exists("tool/lib/1.txt") and site.exists("tool/lib/2.txt")
    site.say("destroy")
    assert sorted(str(each.relative_to(site.host.path(path))) for each in site.host.path(path).rglob("*")) == [
        "lib",
        "lib/mine",
    ]


def test_content_of_others_stays_after_a_change_of_the_node(site: Site, web: Web) -> None:
    """Without a checksum, the file is as defined. An apply that fetches nothing must not take it for its own."""
    web.put("/later", "fetched\n")
    wanted = download(site, "f", f"{web.url}/later")
    site.report("apply", wanted)
    site.write("f", "by hand\n")
    site.report("apply", wanted + '    mode: "0600"\n')
    assert "others have changed the content" in site.say("destroy").out
    assert site.read("f") == "by hand\n"


def test_an_archive_that_is_unpacked_through_a_link_is_undone(site: Site) -> None:
    site.write("real/mine", "mine\n")
    site.write("real/tool", "former\n")
    site.host.run(["ln", "-s", "real", f"{site.place}/link"])
    with zipfile.ZipFile(site.host.path(f"{site.place}/a.zip"), "w") as packed:
        packed.writestr("tool", "new\n")
        packed.writestr("lib/part", "x\n")
    site.come_true(f"  - archive: {site.place}/link\n    host_source: {site.place}/a.zip\n")
    assert site.read("real/tool") == "new\n"
    site.say("destroy")
    assert site.host.run(["ls", f"{site.place}/real"]).stdout == "mine\ntool\n"
    assert site.read("real/tool") == "former\n"


def test_the_controller_fetches_once_and_sends_the_content(site: Site, web: Web, monkeypatch: Any) -> None:
    """The host gets the content and no header. The plan shows the differences, and a wrong URL fails the host."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(site.directory / "cache"))
    checksum = web.put("/private", "new\n")
    site.write("f", "former\n")
    controller = ("via: controller", f"checksum: {checksum}", "headers: {Authorization: 'Bearer {{ word }}'}")
    sent = download(site, "f", f"{web.url}/private", *controller)
    sent = sent.replace(f"ca: {site.place}/ca.pem", f"ca: {web.authority}")
    planned = site.come_true(sent)
    changes = planned[f"download:{site.place}/f"]["changes"]
    assert "-former\n+new\n" in "".join(change.get("diff", "") for change in changes)
    assert web.asked == ["/private"] and site.read("f") == "new\n"
    assert site.host.run(["grep", "-rl", SECRET, "/var/lib/statecfg"], check=False).stdout == ""
    site.say("destroy")
    assert site.read("f") == "former\n"
    wrong = sent.replace("/private", "/no").replace(checksum, "sha256:" + "0" * 64)
    assert "the server answers 404 Not Found" in site.say("plan", wrong, code=None).out


def test_downloads_that_are_too_large_leave_the_file_system_as_it_is(site: Site, web: Web) -> None:
    """The server tells the size of one, and not of the other. Each would fill the file system."""
    site.write("small/README", "")
    checksum, one = web.put("/large", bytes(24 << 20)), web.put("/one", b"x" * (3 << 20))
    web.put("/unsized", bytes(24 << 20))
    site.host.run(["mount", "-t", "tmpfs", "-o", "size=20M", "tmpfs", f"{site.place}/small"])
    try:
        for name in ("large", "unsized"):
            reason = refused(site, download(site, "small/f", f"{web.url}/{name}", f"checksum: {checksum}"))
            assert f"{site.place}/small has only" in reason and "free bytes" in reason
            assert site.host.run(["ls", "-A", f"{site.place}/small"]).stdout == ""
        limited = download(site, "small/f", f"{web.url}/one", f"checksum: {one}", "max_size: 2M")
        assert "has more than 2097152 bytes: max_size does not allow it" in refused(site, limited)
        site.come_true(limited.replace("2M", "3M"))
        site.say("destroy")
    finally:
        site.host.run(["umount", f"{site.place}/small"])
