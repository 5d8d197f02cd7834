"""The documentation is correct: its commands and files work, its links exist, and its reference is complete."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import statecfg as statecfg_package
from statecfg import resources
from statecfg.remote import former
from tests import ROOT, lab
from tests.host.command import reach, statecfg
from tests.host.pages import Block, Reader, blocks, pages
from tests.lab.fixtures import NOT_RUN, or_skip

LINK = re.compile(r"\]\(([^)\s]+)\)")
UNIT = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
SITE = "server {\n    listen {{ port }};\n    root /srv/www;\n}\n"
HEADING = re.compile(r"^#+ (.*)$", re.M)


def block(page: str, mark: str) -> Block:
    (found,) = [item for item in blocks(ROOT / page) if item.mark == mark]
    return found


def anchors(text: str) -> set[str]:
    """Return the anchors that code hosts give to a page's headings."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    found: set[str] = set()
    for heading in HEADING.findall(plain):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        found.add(re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_rows_of_a_table_have_the_same_number_of_cells(page: Path) -> None:
    """A `|` in a cell needs a backslash: code hosts split the row there, even inside backticks."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for rows in re.findall(r"(?:^\|.*\n)+", text, re.M):
        bars = {row: len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()}
        assert len(set(bars.values())) == 1, bars


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_point_to_existing_pages_and_headings(page: Path) -> None:
    for target in LINK.findall(re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        aim = (page.parent / path).resolve() if path else page
        assert aim.exists(), target
        if anchor:
            assert anchor in anchors(aim.read_text(encoding="utf-8")), target


def test_every_page_is_in_an_index() -> None:
    index = ROOT / "docs/README.md"
    indexes = [index, ROOT / "docs/errors.md", ROOT / "docs/decisions/README.md"]
    links = ((at, target.partition("#")[0]) for at in indexes for target in LINK.findall(at.read_text()))
    linked = {(at.parent / target).resolve() for at, target in links}
    assert {page for page in pages() if page.is_relative_to(index.parent)} - {index} <= linked


def test_the_changelog_has_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    headings = HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    released = [heading for heading in headings[1:] if not heading.endswith("(not released)")]
    assert released[0] == version


def test_blocks_of_python_and_toml_can_be_parsed() -> None:
    count = 0
    for page in pages():
        for found in blocks(page) if page.parent.name != "errors" else ():  # those pages show mistakes
            if found.language == "python":
                ast.parse(found.text, str(found))
                count += 1
            elif found.language == "toml":
                tomllib.loads(found.text)
                count += 1
    assert count > 5


# Pages whose commands are run as written


@contextmanager
def running(start: Callable[[], Any]) -> Iterator[Any]:
    """Start a host for the `with` block; skip the test if this machine can't."""
    with or_skip():
        host = start()
    try:
        yield host
    finally:
        host.stop()


@pytest.fixture
def web1(tmp_path: Path) -> Iterator[Any]:
    """Give a host to log in to: a light host if root runs the tests, otherwise an sshd for the current user."""
    with running(lambda: lab.light_hosts(1)[0] if os.geteuid() == 0 else lab.plain_sshd(tmp_path)) as host:
        yield host


@pytest.fixture
def nginx_host(tmp_path: Path) -> Iterator[lab.Host]:
    """Give a booted host that can install a package called nginx, which only sleeps."""
    with running(lambda: lab.booted_host("web1")) as host:
        repository = lab.AptRepository(tmp_path / "apt")
        files = {"/lib/systemd/system/nginx.service": (UNIT, 0o644), "/etc/nginx/conf.d/README": ("", 0o644)}
        repository.add("nginx", "1.22.1-9", files=files)
        repository.use(host)
        yield host


def test_commands_in_the_tutorial_work_as_written(tmp_path: Path, web1: Any) -> None:
    reader = Reader(tmp_path / "home")
    config = reader.home / ".ssh/config"
    config.write_text(
        f"Host web1\n  HostName {web1.address}\n  Port {web1.port}\n  User {web1.user}\n"
        f"  IdentityFile {web1.identity}\n  UserKnownHostsFile {web1.known_hosts}\n  IdentitiesOnly yes\n"
    )
    # The real client reads its settings from the home directory in the user database, not from $HOME.
    reader.program("ssh", f'exec /usr/bin/ssh -F "{config}" "$@"')
    assert reader.follow(ROOT / "docs/tutorial.md") > 15


def test_commands_on_the_node_type_page_work_as_written(tmp_path: Path) -> None:
    scratch = Path("/tmp/statecfg-settings")
    assert not scratch.exists()
    reader = Reader(tmp_path / "home")
    reader.program("python", f'exec "{sys.executable}" "$@"')
    (reader.place / "statecfg.toml").touch()
    try:
        assert reader.follow(ROOT / "docs/writing-a-node-type.md") > 5
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def test_the_plans_in_the_readme_and_concepts_are_real(tmp_path: Path, nginx_host: lab.Host) -> None:
    playbook = tmp_path / "playbooks/web.yml"
    playbook.parent.mkdir()
    playbook.write_text(block("README.md", "file playbooks/web.yml").text)
    (playbook.parent / "site.conf.j2").write_text(SITE)
    reach(tmp_path, [nginx_host], web=["web1"])
    (tmp_path / "statecfg.toml").write_text(f'ssh_config = "{tmp_path}/ssh_config"\n')

    def run(verb: str, *more: str) -> str:
        return statecfg(verb, "playbooks/web.yml", *more, cwd=tmp_path, COLUMNS="200").out

    def shown(page: str, mark: str) -> str:
        command, _, text = block(page, mark).text.partition("\n")
        assert command == "$ statecfg plan playbooks/web.yml"
        return text

    assert run("plan") == shown("README.md", "the plan of a bare host")
    run("apply", "--yes")
    site = "/etc/nginx/conf.d/site.conf"
    nginx_host.write(site, nginx_host.read(site).replace("8080", "9090"))
    assert run("plan") == shown("docs/concepts.md", "the plan of a drifted host")


@pytest.mark.skipif(os.geteuid() != 0, reason=f"{NOT_RUN}the pages show what root sees")
@pytest.mark.parametrize(
    "page", ["coming-from", "editors", "existing-machines", "plans", "projects", "roles", "secrets"]
)
def test_commands_on_example_pages_work_as_written(page: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path / "home")
    (reader.place / "statecfg.toml").touch()
    assert reader.follow(ROOT / f"docs/{page}.md", scratch=tmp_path) > 0


def test_the_page_on_upgrading_has_every_renamed_name() -> None:
    page = (ROOT / "docs/upgrading.md").read_text(encoding="utf-8")
    renamed = {f"statecfg.{old}": f"statecfg.{new}" for old, new in statecfg_package._RENAMED.items()}
    renamed |= {f"statecfg.remote.{old}": f"statecfg.remote.{new}" for old, new in former.MOVED.items()}
    renamed["statecfg.hooks.http_hooks"] = "statecfg.hooks.http.calls"
    rows = re.findall(r"^\| `(statecfg\.\S+)` \|.*`(statecfg\.\S+)` \|$", page, flags=re.M)
    assert dict(rows) == renamed


def test_the_pages_import_only_public_names() -> None:
    """`statecfg.resources` has the node types, those of a project among them."""
    found: list[tuple[str, str]] = []
    for page in pages():
        for module, names in re.findall(r"^from (statecfg[\w.]*) import (.+)$", page.read_text("utf-8"), flags=re.M):
            found += [(module, name.partition(" ")[0]) for name in names.split(", ")]
    assert len(found) > 20
    own = "statecfg.resources.git_setting"  # a module of the reader's project
    assert {module for module, _ in found} == {"statecfg", "statecfg.resources", own}
    assert {name for module, name in found if module == "statecfg"} <= set(statecfg_package.__all__)


def test_playbooks_of_the_dialects_page_draw_the_same_graph(tmp_path: Path) -> None:
    (tmp_path / "inventory.yml").write_text("hosts: {web1: }\ngroups: {web: {hosts: [web1]}}\n")
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/site.conf.j2").write_text(SITE)
    drawn = set()
    for found in blocks(ROOT / "docs/playbooks.md"):
        name = re.match(r"[#;] (playbooks/web\.\w+)\n", found.text)
        if name:
            (tmp_path / name[1]).write_text(found.text)
            drawn.add(statecfg("graph", name[1], "--format", "dot", cwd=tmp_path).out.replace(name[1], ""))
    assert len(list(tmp_path.glob("playbooks/web.*"))) == 3
    assert len({re.sub(r"web\.\w+:\d+(:\d+)?", "", text) for text in drawn}) == 1


def test_the_example_on_the_inventory_page_is_valid(tmp_path: Path) -> None:
    (found,) = [item for item in blocks(ROOT / "docs/inventory.md") if item.text.startswith("hosts:")]
    (tmp_path / "inventory.yml").write_text(found.text)
    assert set(statecfg("inventory", "--json", cwd=tmp_path).json()["hosts"]) == {"web1", "web2", "db1"}


def test_the_examples_in_the_reference_are_valid(tmp_path: Path) -> None:
    (tmp_path / "playbooks/conf.d").mkdir(parents=True)
    (tmp_path / "inventory.yml").write_text("hosts: {web1: {address: 192.0.2.1}}\n")
    for name in ("conf.d/site.conf", "shop.conf.j2"):
        (tmp_path / "playbooks" / name).write_text("")
    with zipfile.ZipFile(tmp_path / "playbooks/site.zip", "w") as archive:
        archive.writestr("index.html", "")
    certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    (tmp_path / "playbooks/example-ca.pem").write_text(certificate)
    (tmp_path / "playbooks/docker.asc").write_text(
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nxgYEAAAAABY=\n-----END PGP PUBLIC KEY BLOCK-----\n"
    )
    count = 0
    for found in blocks(ROOT / "docs/reference/node-types.md"):
        if found.language == "yaml":
            name, text = "example.yml", "hosts: web1\nresources:\n" + _named(found.text)
        else:
            name, text = "example.py", _play(found.text)
        (tmp_path / "playbooks" / name).write_text(text)
        secrets = dict.fromkeys(re.findall(r"\benv[:=] ?\"?(\w+)", found.text), "only an example")
        statecfg("validate", f"playbooks/{name}", cwd=tmp_path, **secrets)
        count += 1
    assert count >= 18


def _named(text: str) -> str:
    """Return an example in YAML and add the nodes that it requires."""
    required = set(re.findall(r"\b([a-z_]+:/?[\w./-]+)(?=\"?[\],])", text))
    named = [name.split(":", 1) for name in required]
    return text + "".join(f"- {kind}: {thing}\n" for kind, thing in named if kind in resources.available())


def _play(text: str) -> str:
    """Turn an example in Python into a playbook whose play returns the nodes of the example."""
    tree = ast.parse(text)
    called = {item.func.id for item in ast.walk(tree) if isinstance(item, ast.Call) and isinstance(item.func, ast.Name)}
    kinds = ", ".join(sorted(called - {"secret"}))
    lines = ["from statecfg import play, secret", f"from statecfg.resources import {kinds}"]
    lines += ["@play(hosts='web1')", "def example(host):", "    found = []"]
    for item in tree.body:
        code = ast.unparse(item)
        lines.append(f"    found.append({code})" if isinstance(item, ast.Expr) else f"    {code}")
    return "\n".join([*lines, "    return found", ""])


# The reference


def test_the_reference_matches_the_code() -> None:
    made = reference().made()
    for path, text in made.items():
        assert path.exists() and path.read_text(encoding="utf-8") == text, f"run script/docs: {path} is out of date"
    folder = ROOT / "docs/reference"
    assert set(folder.iterdir()) == {path for path in made if path.parent == folder}


def reference() -> Any:
    """Import the program behind script/docs as a module."""
    spec = importlib.util.spec_from_file_location("statecfg_reference", ROOT / "script/docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def documented(page: str, heading: str) -> set[str]:
    """Return the names in the first column of the tables under a heading."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    section = re.split(r"^#+ ", text, maxsplit=1, flags=re.M)[0]
    return set(re.findall(r"^\| `([^`]+)`", section, flags=re.M))


def test_every_field_of_real_reports_is_documented(tmp_path: Path) -> None:
    playbook = tmp_path / "all.py"
    playbook.write_text(
        "from statecfg import play\nfrom statecfg.resources import command, file\n\n"
        "@play(hosts='@local')\ndef p(host):\n"
        f"    first = file('{tmp_path}/a', content='a', mode='0644')\n"
        f"    second = command('b', argv=['false'], restart_on=[first])\n"
        f"    return [command('c', argv=['true'], creates='{tmp_path}/c', requires=[second])]\n"
    )
    reader = Reader(tmp_path / "home")
    for verb, code in (("plan", 0), ("apply --yes", 1)):
        done = reader.shell(f"statecfg {verb} {playbook} --json")
        assert done.returncode == code, done.stderr
        report = json.loads(done.stdout)
        assert {*report, "left_hosts"} == documented("docs/report.md", "## Top level")  # no host has left
        (host,) = report["hosts"].values()
        assert set(host) <= documented("docs/report.md", "## A host")
        for node in (node for layer in host["layers"] for node in layer):
            assert set(node) <= documented("docs/report.md", "## A node")
            for part in (*node["changes"], *node["actions"]):
                assert all(f"`{key}`" in (ROOT / "docs/report.md").read_text() for key in part)
    for block_ in blocks(ROOT / "docs/report.md"):
        for text in block_.text.splitlines() if block_.language == "jsonl" else [block_.text]:
            json.loads(text)


def test_every_command_option_and_variable_is_documented() -> None:
    from statecfg.cli.main import VERBS

    page = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    for verb in VERBS:
        assert f"\n## {verb}\n" in page
        for option in re.findall(r"--[a-z][a-z-]+", statecfg(verb, "--help").out):
            assert f"`{option}`" in page or option == "--help", f"{verb} {option}"
    sources = [*(ROOT / "statecfg").rglob("*.py"), *(ROOT / "resources").rglob("*.*y")]
    used = {name for path in sources for name in re.findall(r"\bSTATECFG_[A-Z_]+\b", path.read_text(encoding="utf-8"))}
    assert used - {"STATECFG_OPTION"} <= set(re.findall(r"\bSTATECFG_[A-Z_]+\b", page))


def test_every_node_type_and_attribute_is_explained() -> None:
    from statecfg import resources
    from statecfg.graph import schema

    for name in resources.available():
        given = schema.of(getattr(resources, name))
        assert documented("docs/reference/node-types.md", f"## {name}") == set(given.fields)
        assert all(field.doc for field in given.fields.values()), name
    assert documented("docs/reference/node-types.md", "## Every node") == set(schema.OPTIONS)


def test_every_error_in_the_code_is_documented() -> None:
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    used = {code for path in (ROOT / "statecfg").rglob("*.py") for code in re.findall(r"\bSC\d{4}\b", path.read_text())}
    assert used and all(f"| [{code}](" in page for code in used)


def test_every_setting_of_a_project_is_documented() -> None:
    from statecfg.playbook.project import SETTINGS

    (found,) = [item for item in blocks(ROOT / "docs/projects.md") if item.language == "toml" and not item.mark]
    assert set(tomllib.loads(found.text)) == set(SETTINGS)


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    page = (ROOT / "docs/decisions/0001-dependencies.md").read_text(encoding="utf-8")
    for requirement in [*project["dependencies"], *(item for extra in extras for item in extra)]:
        name = re.split(r"[<>=\[ ]", requirement)[0]
        if name == project["name"]:  # an extra that includes another extra
            continue
        assert re.search(rf"^\|[^|]*\b{re.escape(name)}\b", page, flags=re.M), name
