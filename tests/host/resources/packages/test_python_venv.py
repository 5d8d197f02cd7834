"""Virtual environments with packages that the test builds: they come true and are undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.packages.wheels import wheel
from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host

SERVER = """\
import http.server, ssl, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, directory=sys.argv[1], **options)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8330), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + "/cert", sys.argv[1] + "/key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@pytest.fixture
def site(booted: Host, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(booted, tmp_path, f"/srv/{request.node.name[:40]}")
    for version in ("1.0", "2.0"):
        wheel(booted, f"{found.place}/wheels", "shop_tool", version, "helper" if version == "2.0" else "")
    wheel(booted, f"{found.place}/wheels", "helper", "0.1")
    yield found
    found.clean()


def environment(site: Site, *more: str) -> str:
    lines = [f"find_links: {site.place}/wheels", *more]
    return f"  - python_venv: {site.place}/env\n" + "".join(f"    {line}\n" for line in lines)


def version(site: Site) -> str:
    program = [f"{site.place}/env/bin/python", "-c", "import shop_tool; print(shop_tool.version)"]
    return site.host.run(program).stdout.strip()


def test_an_environment_with_packages_comes_true_and_is_undone(site: Site) -> None:
    site.come_true(environment(site, "packages: [Shop-Tool==1.0]"))
    assert version(site) == "1.0"
    site.come_true(environment(site, "packages: [shop_tool==2.0]"))
    assert version(site) == "2.0"
    site.host.run([f"{site.place}/env/bin/python", "-m", "pip", "uninstall", "-qy", "shop_tool"])
    planned = site.come_true(environment(site, "packages: [shop_tool==2.0]"))
    (node,) = planned.values()
    assert [action["op"] for action in node["actions"]] == ["install"]
    site.say("destroy")
    assert not site.exists("env")


def test_an_older_environment_gets_its_packages_back(site: Site) -> None:
    """What came as a dependency stays, and the report says so."""
    site.host.run(["python3", "-m", "venv", f"{site.place}/env"])
    pip = [f"{site.place}/env/bin/python", "-m", "pip", "install", "-q", "--no-index"]
    site.host.run([*pip, "--find-links", f"{site.place}/wheels", "shop_tool==1.0"])
    wheel(site.host, f"{site.place}/wheels", "another", "3")
    site.come_true(environment(site, "packages: [shop_tool==2.0, another]"))
    assert version(site) == "2.0"
    ran = site.say("destroy")
    assert "helper of " in ran.out and "came as dependencies" in ran.out
    assert version(site) == "1.0"
    assert not list(site.host.path(f"{site.place}/env").glob("lib/*/site-packages/another*"))


def test_a_version_that_others_installed_stays(site: Site) -> None:
    site.host.run(["python3", "-m", "venv", f"{site.place}/env"])
    site.come_true(environment(site, "packages: [shop_tool==1.0, helper]"))
    pip = [f"{site.place}/env/bin/python", "-m", "pip", "install", "-q", "--no-index"]
    site.host.run([*pip, "--find-links", f"{site.place}/wheels", "shop_tool==2.0"])
    assert f"shop-tool of {site.place}/env stays at 2.0: others installed it" in site.say("destroy").out
    assert version(site) == "2.0"


def test_packages_come_from_an_index_with_its_own_authority_for_a_user(site: Site) -> None:
    host, place = site.host, site.place
    host.run(["useradd", "--create-home", "deploy"])
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=a", "-addext", "subjectAltName=IP:127.0.0.1"]
    host.run([*argv, "-keyout", f"{place}/key", "-out", f"{place}/cert", *names])
    file = wheel(host, f"{place}/simple/shop-tool", "shop_tool", "1.0")
    host.write(f"{place}/simple/shop-tool/index.html", f'<a href="{file}">{file}</a>')
    host.write(f"{place}/server.py", SERVER)
    host.run(["systemd-run", "--quiet", "--unit=packages", "python3", f"{place}/server.py", place])
    until = f"until curl -sf --cacert {place}/cert https://127.0.0.1:8330/cert; do sleep 0.1; done"
    host.run(["timeout", "60", "sh", "-c", until])
    more = ["packages: [shop_tool]", "index: https://127.0.0.1:8330/simple/", f"ca: {place}/cert", "user: deploy"]
    node = environment(site, *more).replace(f"    find_links: {place}/wheels\n", "")
    site.come_true(node)
    assert version(site) == "1.0"
    assert host.run(["stat", "-c", "%U", f"{place}/env/bin/python"]).stdout == "deploy\n"
    failed = nodes(site.report("apply", node.replace("[shop_tool]", "[none-such]"), code=1))
    assert "none-such" in failed[f"python_venv:{place}/env"]["actions"][0]["reason"]


def test_extras_are_installed_later(site: Site) -> None:
    """The version is the same; what the extra needs is missing. An extra that does not exist is an error."""
    needs = 'helper; extra == "std" and python_version > "3"\nRequires-Dist: absent; extra == "win" and os_name == "nt"'
    wheel(site.host, f"{site.place}/wheels", "base", "1.0", f"{needs}\nProvides-Extra: std\nProvides-Extra: win")
    site.come_true(environment(site, "packages: [base==1.0]"))
    planned = site.come_true(environment(site, "packages: ['base[std]==1.0']"))
    (node,) = planned.values()
    assert [action["op"] for action in node["actions"]] == ["install"]
    site.host.run([f"{site.place}/env/bin/python", "-c", "import helper"])
    site.come_true(environment(site, "packages: ['base[std,win]']"))  # on Linux, `win` needs nothing
    (node,) = nodes(site.report("plan", environment(site, "packages: ['base[stt]']"), code=1)).values()
    assert node["reason"] == "the installed base has no extra stt; it has std, win"


def test_an_interpreter_that_is_gone(site: Site) -> None:
    """The environment gets another interpreter, and keeps its packages."""
    site.host.run(["ln", "-s", "/usr/bin/python3", f"{site.place}/former-python"])
    site.come_true(environment(site, "packages: [shop_tool==1.0]", f"python: {site.place}/former-python"))
    site.host.run(["ln", "-sf", f"{site.place}/former-python", f"{site.place}/env/bin/python"])
    site.host.run(["rm", f"{site.place}/former-python"])
    planned = site.come_true(environment(site, "packages: [shop_tool==1.0]"))
    (node,) = planned.values()
    assert [action["op"] for action in node["actions"]] == ["repair"]
    assert version(site) == "1.0"


def test_the_plan_lists_the_packages(site: Site) -> None:
    ran = site.say("plan", environment(site, "packages: [shop_tool==1.0, helper]"))
    assert "venv shop-tool in" in ran.out and "venv helper in" in ran.out, ran.out
