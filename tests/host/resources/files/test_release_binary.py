"""Programs from archives of HTTPS servers in the test: versions are installed, switched and undone."""

from __future__ import annotations

import hashlib
import io
import tarfile
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
    found = Site(light_host, tmp_path, f"/srv/{request.node.name[:40]}")
    found.write("ca.pem", web.authority_text)
    found.write("bin/other", "other\n")
    web.asked.clear()
    yield found
    found.clean()


def program(version: str) -> str:
    return f"#!/bin/sh\necho {version}\n"


def digest(content: str) -> str:
    return f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"


def archive(web: Web, version: str) -> str:
    """Serve an archive with a program, and return its checksum."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:xz") as packed:
        for name, content in (("README", "read me\n"), ("bin/tool", program(version))):
            member = tarfile.TarInfo(f"./tool-{version}/{name}")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content.encode()))
    return web.put(f"/tool-{version}.tar.xz", stream.getvalue())


def tool(site: Site, web: Web, version: str, *more: str) -> str:
    lines = [
        f"version: '{version}'",
        f"url: {web.url}/tool-{version}.tar.xz",
        f"checksum: {archive(web, version)}",
        f"member: tool-{version}/bin/tool",
        f"member_checksum: {digest(program(version))}",
        f"ca: {site.place}/ca.pem",
        *more,
    ]
    return f"  - release_binary: {site.place}/bin/tool\n" + "".join(f"    {line}\n" for line in lines)


def inside(site: Site) -> list[str]:
    return sorted(path.name for path in site.host.path(f"{site.place}/bin").iterdir())


def test_versions_are_installed_switched_and_removed(site: Site, web: Web) -> None:
    """Only the program is installed. A plan fetches nothing, nor does an apply that only switches the link."""
    first = tool(site, web, "1.0", 'validate: [sh, -n, "{}"]')
    nodes(site.report("plan", first))
    assert web.asked == []
    site.come_true(first)
    assert web.asked == ["/tool-1.0.tar.xz"] and inside(site) == ["other", "tool", "tool-1.0"]
    assert site.host.run([f"{site.place}/bin/tool"]).stdout == "1.0\n"
    site.come_true(tool(site, web, "2.0"))
    assert site.host.run([f"{site.place}/bin/tool"]).stdout == "2.0\n"
    web.asked.clear()
    (planned,) = site.come_true(first).values()
    assert [action["op"] for action in planned["actions"]] == ["link"] and web.asked == []
    site.write("bin/tool-1.0", "by hand\n")
    (planned,) = site.come_true(first).values()
    assert [action["op"] for action in planned["actions"]] == ["install"]
    assert site.host.run([f"{site.place}/bin/tool"]).stdout == "1.0\n"
    site.say("destroy")
    assert inside(site) == ["other"]


def test_a_program_that_existed_comes_back(site: Site, web: Web) -> None:
    site.write("bin/tool", "former\n")
    site.come_true(tool(site, web, "1.0"))
    assert site.host.path(f"{site.place}/bin/tool").is_symlink()
    site.say("destroy")
    assert inside(site) == ["other", "tool"] and site.read("bin/tool") == "former\n"
    site.come_true(f"  - release_binary: {site.place}/bin/tool\n    absent: true\n")
    assert inside(site) == ["other"]
    site.say("destroy")
    assert site.read("bin/tool") == "former\n"


def test_nothing_is_installed_if_a_checksum_or_the_member_is_wrong(site: Site, web: Web) -> None:
    good = tool(site, web, "1.0")
    wrong = {
        "member_checksum is sha256:000": good.replace(digest(program("1.0")), "sha256:" + "0" * 64),
        "has the checksum sha256:": good.replace(archive(web, "1.0"), "sha256:" + "0" * 64),
        "did you mean `tool-1.0/bin/tool`?": good.replace("bin/tool\n    m", "bin/tol\n    m"),
        "false rejects the new content": f"{good}    validate: ['false', '{{}}']\n",
    }
    for reason, resources in wrong.items():
        (node,) = nodes(site.report("apply", resources, code=1)).values()
        assert reason in node["reason"]
        assert inside(site) == ["other"]
    page = web.put("/page", "no archive\n")
    no_archive = good.replace("/tool-1.0.tar.xz", "/page").replace(archive(web, "1.0"), page)
    (node,) = nodes(site.report("apply", no_archive, code=1)).values()
    assert "it is not a readable tar or zip archive" in node["reason"]


def test_the_controller_fetches_the_archive_and_sends_the_program(site: Site, web: Web, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(site.directory / "cache"))
    header = "headers: {Authorization: 'Bearer {{ word }}'}"
    sent = tool(site, web, "3.0", "via: controller", header).replace(f"{site.place}/ca.pem", str(web.authority))
    (planned,) = site.come_true(sent).values()
    assert "+echo 3.0\n" in "".join(change.get("diff", "") for change in planned["changes"])
    assert web.asked == ["/tool-3.0.tar.xz"]
    assert site.host.run([f"{site.place}/bin/tool"]).stdout == "3.0\n"
    assert site.host.run(["grep", "-rl", SECRET, "/var/lib/statecfg"], check=False).stdout == ""
    wrong = sent.replace(digest(program("3.0")), "sha256:" + "0" * 64)
    assert "member_checksum is sha256:000" in site.say("plan", wrong, code=None).out


def test_destroy_keeps_what_others_installed(site: Site, web: Web) -> None:
    """Others install a version to which the node links later, change one of the node's, and link to a newer one."""
    site.come_true(tool(site, web, "1.0"))
    site.write("bin/tool-2.0", program("2.0"))
    site.host.path(f"{site.place}/bin/tool-2.0").chmod(0o755)
    (planned,) = site.come_true(tool(site, web, "2.0")).values()
    assert [action["op"] for action in planned["actions"]] == ["link"]
    site.come_true(tool(site, web, "3.0"))
    site.come_true(tool(site, web, "4.0"))
    site.write("bin/tool-3.0", "by hand\n")
    site.write("bin/tool-5.0", "newer\n")
    site.host.run(["ln", "-sfn", "tool-5.0", f"{site.place}/bin/tool"])
    out = site.say("destroy").out
    assert inside(site) == ["other", "tool", "tool-2.0", "tool-3.0", "tool-5.0"]
    assert "bin/tool is a link to tool-5.0, which this node did not install: it stays" in out
    assert "bin/tool-2.0 stays: the ledger has no record that this node installed it" in out
    assert "bin/tool-3.0 is not the program that this node installed: it stays" in out


@pytest.mark.parametrize(
    "headers", ["", "{X-Token: !secret {env: STATECFG_TEST_WORD}}"], ids=["plain", "with a secret"]
)
def test_destroy_keeps_a_program_that_others_replaced(site: Site, web: Web, headers: str) -> None:
    lines = {"url": f"{web.url}/tool", "checksum": web.put("/tool", program("1.0")), "ca": f"{site.place}/ca.pem"}
    lines.update({"headers": headers} if headers else {})
    one = f"  - release_binary: {site.place}/bin/tool\n" + "".join(f"    {key}: {lines[key]}\n" for key in lines)
    site.come_true(one)
    site.say("destroy")
    assert inside(site) == ["other"]
    site.come_true(one)
    site.write("bin/tool", program("2.0"))
    assert "bin/tool is not the program that this node installed: it stays" in site.say("destroy").out
    assert site.read("bin/tool") == program("2.0")
    site.host.path(f"{site.place}/bin/tool").unlink()
