"""The section "I want to add a …" in docs/architecture.md is correct: the tests follow its steps in a copy of statecfg.

A subsection names at most two product files. Each case changes exactly the files of its subsection and then runs a
command that uses the addition.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.host.server.serving import serving

ROOT = Path(__file__).parent.parent.parent
PRODUCT = ("statecfg", "resources")
SUFFIXES = {".py", ".hy", ".js", ".css", ".html"}


@dataclass(frozen=True)
class Copy:
    """A scratch copy of the product, and a project that uses it.

    :param root: where `statecfg/` and `resources/` are
    :param project: the directory of the project
    """

    root: Path
    project: Path

    def add(self, path: str, text: str) -> None:
        """Create a file of the product."""
        file = self.root / path
        assert not file.exists()
        file.write_text(text)

    def insert(self, path: str, before: str, text: str) -> None:
        """Insert text in a file of the product, before the only line that starts with `before`."""
        file = self.root / path
        content = file.read_text()
        assert len(re.findall(rf"(?m)^{re.escape(before)}", content)) == 1, f"expected one line {before!r} in {path}"
        file.write_text(re.sub(rf"(?m)^{re.escape(before)}", lambda _: text + before, content))

    def write(self, path: str, text: str) -> None:
        """Write a file of the project."""
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run the copy's `statecfg`; return its stdout."""
        own = {"PYTHONPATH": str(self.root), "NO_COLOR": "1", "STATECFG_STATE_DIR": str(self.root / "state")}
        done = subprocess.run(
            [sys.executable, "-m", "statecfg", *arguments],
            cwd=self.project,
            env={**os.environ, **own, "STATECFG_STORE": f"sqlite:///{self.root}/store.db"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """Give a fresh copy of the product with an empty project."""
    for name in PRODUCT:
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    made = Copy(tmp_path, tmp_path / "project")
    made.write("statecfg.toml", "")
    return made


def files(root: Path) -> dict[str, bytes]:
    """Return the content of each product file in a copy, by path."""
    found = {}
    for name in PRODUCT:
        for file in (root / name).rglob("*"):
            if file.suffix in SUFFIXES and not file.is_symlink():
                found[str(file.relative_to(root))] = file.read_bytes()
    return found


def additions() -> dict[str, set[str]]:
    """Return the subsections in docs/architecture.md: for each addition, patterns of the files to change."""
    page = (ROOT / "docs/architecture.md").read_text()
    section = page.split("## I want to add", 1)[1].split("\n## ", 1)[0]
    parts = [part.partition("\n") for part in section.split("\n### ")[1:]]
    return {
        title: {re.sub(r"<\w+>", "*", path) for path in re.findall(r"`((?:statecfg|resources)/[^`]+)`", steps)}
        for title, _, steps in parts
    }


def add_node_type(copy: Copy) -> None:
    copy.add(
        "resources/files/note.py",
        '''\
"""Notes."""

from __future__ import annotations

from statecfg import AbsolutePath, Action, HostNode, Machine, Result, Text, World, node_type, op


@node_type
def note(path: AbsolutePath, *, text: Text) -> None:
    """A note.

    :param path: its file
    :param text: what it says
    """


@op
def put(machine: Machine, path: str, text: str) -> Result:
    """Write the note."""
    return machine.write(path, text)


@note.check
def check(node: HostNode, world: World) -> list[Action]:
    """Compare the note."""
    path, text = node.attrs["path"], node.attrs["text"]
    return [] if world.stat(path) is not None and world.read(path) == text.encode() else [put(path, text)]
''',
    )
    copy.insert("resources/index/types.py", '    "npm_package":', '    "note": "files",\n')
    copy.write("site.yml", f"hosts: '@local'\nresources:\n  - note: {copy.project}/made\n    text: hello\n")
    copy.run("apply", "site.yml", "--yes")
    assert (copy.project / "made").read_text() == "hello"


def add_attribute(copy: Copy) -> None:
    path = "resources/files/file.py"
    copy.insert(path, "    backup: Suffix", "    longest: int | None = None,\n")
    copy.insert(path, "    :param backup:", "    :param longest: maximum length of the content\n")
    check = '    if attrs.get("longest") is not None and len(attrs["content"]) > attrs["longest"]:\n'
    copy.insert(
        path, '    for name in ("validate", "backup"', f'{check}        raise ValueError("content is too long")\n'
    )
    play = f"hosts: '@local'\nresources:\n  - file: {copy.project}/made\n    content: text\n    longest: "
    copy.write("site.yml", f"{play}3\n")
    copy.run("apply", "site.yml", "--yes", code=5)
    assert not (copy.project / "made").exists()
    copy.write("site.yml", f"{play}4\n")
    copy.run("apply", "site.yml", "--yes")
    assert (copy.project / "made").read_text() == "text"


def add_attribute_with_action(copy: Copy) -> None:
    path = "resources/files/directory.py"
    copy.insert(path, "    source: LocalPath", "    readme: PublicLine | None = None,\n")
    copy.insert(path, "    :param source:", "    :param readme: the line in the directory's README\n")
    action = '    if attrs.get("readme"):\n        actions += directories.describing(world, path, attrs["readme"])\n'
    copy.insert(path, "    return actions", action)
    path = "resources/files/directories.py"
    copy.insert(
        path,
        "def own_actions(",
        '''\
@op
def describe(machine: Machine, path: str, text: str) -> Result:
    """Write the README of a directory."""
    return machine.write(path + "/README", text + "\\n")


def describing(world: World, path: str, text: str) -> list[Action]:
    """Return what writes the README, if it differs."""
    readme = path + "/README"
    same = world.stat(readme) is not None and world.read(readme) == text.encode() + b"\\n"
    return [] if same else [describe(path, text)]


''',
    )
    remember = '    if attrs.get("readme"):\n        memory["readme"] = snap.entry(path + "/README")\n'
    copy.insert(path, "    return snap.with_lost(memory)", remember)
    undo = '    if "readme" in memory:\n        restoring.back(path + "/README", memory["readme"], ("file",))\n'
    copy.insert(path, "    if now is None and was is not None:", undo)
    copy.insert(path, "    class DirectoryMemory(", "    from typing import NotRequired\n\n")
    copy.insert(path, "        above: list[str]", "        readme: NotRequired[snapshot.PathRecord | None]\n")

    made, kept = copy.project / "made", copy.project / "kept"
    kept.mkdir()
    (kept / "README").write_text("theirs\n")
    nodes = "".join(f"  - directory: {path}\n    readme: ours\n" for path in (made, kept))
    copy.write("site.yml", f"hosts: '@local'\nresources:\n{nodes}")
    copy.run("apply", "site.yml", "--yes")
    assert (made / "README").read_text() == (kept / "README").read_text() == "ours\n"
    copy.run("plan", "site.yml", "--detailed-exitcode")
    copy.run("destroy", "site.yml", "--yes")
    assert not made.exists() and (kept / "README").read_text() == "theirs\n"


def add_transport(copy: Copy) -> None:
    copy.add(
        "statecfg/transport/twin.py",
        '''\
"""Hosts that are this machine under another name."""

from . import SshSettings, Target
from .local import LocalConnection


def connect(target: Target, settings: SshSettings) -> LocalConnection:
    """Return a connection to this machine; see `statecfg.transport.connect`."""
    return LocalConnection(target.name)
''',
    )
    file = copy.root / "statecfg/playbook/inventory.py"
    file.write_text(file.read_text().replace('"local": "local"}', '"local": "local", "twin": "twin"}'))
    copy.write("inventory.yml", "hosts:\n  box: {transport: twin}\n")
    assert json.loads(copy.run("facts", "box", "--json"))["hosts"]["box"]["status"] == "ok"


def add_verb(copy: Copy) -> None:
    copy.add(
        "statecfg/cli/greet.py",
        '''\
"""`statecfg greet`: say hello."""

import click

from statecfg.cli.options import Command


@click.command("greet", cls=Command)
def command() -> int:
    """Say hello."""
    click.echo("hello")
    return 0
''',
    )
    copy.insert("statecfg/cli/main.py", '    "facts": (', '    "greet": ("greet", "Say hello."),\n')
    assert copy.run("greet") == "hello\n"
    assert "Say hello." in copy.run("--help")


def add_inventory_format(copy: Copy) -> None:
    copy.add(
        "statecfg/dialects/plain_inventory.py",
        '''\
"""Inventories that are a list of names, one in each line."""

from pathlib import Path

from statecfg.playbook.inventory import Host, Inventory
from statecfg.problems import SourceLocation


def load(path: Path) -> Inventory:
    """Return the inventory in a file."""
    lines = enumerate(path.read_text().splitlines(), 1)
    return Inventory([Host(name, position=SourceLocation(str(path), line)) for line, name in lines], {}, [], str(path))
''',
    )
    file = copy.root / "statecfg/dialects/__init__.py"
    file.write_text(file.read_text().replace("INVENTORIES = {", 'INVENTORIES = {".txt": "plain_inventory", '))
    copy.write("hosts.txt", "web1\nweb2\n")
    assert list(json.loads(copy.run("inventory", "-i", "hosts.txt", "--json"))["hosts"]) == ["web1", "web2"]


def add_migration(copy: Copy) -> None:
    copy.run("hosts")  # creates a store in the present format
    file = copy.root / "statecfg/store/tables.py"
    text = file.read_text()
    column = '    Column("installed_at", Double),\n'
    assert text.count(column) == 1
    file.write_text(text.replace(column, column + '    Column("rack", Text, server_default=""),\n'))
    file = copy.root / "statecfg/store/migrations.py"
    text = file.read_text()
    version = int(re.findall(r"(?m)^SCHEMA = (\d+)$", text)[0])
    text = text.replace(f"SCHEMA = {version}\n", f"SCHEMA = {version + 1}\n")
    statement = "\"ALTER TABLE host ADD COLUMN rack TEXT DEFAULT ''\""
    text = text.replace(
        "CHANGES: Changes = {\n", f'CHANGES: Changes = {{\n    {version + 1}: {{"host": [{statement}]}},\n'
    )
    file.write_text(text)
    copy.run("store", "migrate")
    with closing(sqlite3.connect(copy.root / "store.db")) as store:
        assert "rack" in [column[0] for column in store.execute("SELECT * FROM host").description]


def add_api_route(copy: Copy) -> None:
    copy.add(
        "statecfg/server/api_greeting.py",
        '''\
"""The call that greets the caller."""

from starlette.responses import JSONResponse, Response

from statecfg.server.auth import VIEWER
from statecfg.server.parameters import IN_PATH
from statecfg.server.request import ApiRequest
from statecfg.server.routing import Routes

routes = Routes()


IN_PATH["rack"] = "Name of a rack."
GREETING = {"type": "object", "properties": {"hello": {"type": "string"}}, "required": ["hello"]}


@routes(
    "GET",
    "/statecfg/1.0/greeting/{rack}",
    VIEWER,
    "Greet the caller in a rack.",
    {200: GREETING},
)
def _greet(request: ApiRequest) -> Response:
    return JSONResponse({"hello": f"{request.principal.name} in {request.path_params['rack']}"})
''',
    )
    file = copy.root / "statecfg/server/routes.py"
    text = file.read_text()
    file.write_text(text.replace("    api_hosts,\n", "    api_greeting,\n    api_hosts,\n"))
    with (
        serving(copy.project, PYTHONPATH=str(copy.root)) as served,
        served.client("viewer") as viewer,
        served.client("") as stranger,
    ):
        assert viewer.get("/statecfg/1.0/greeting/r1").json() == {"hello": "a-viewer in r1"}
        assert stranger.get("/statecfg/1.0/greeting/r1").status_code == 401
        described = viewer.get("/openapi.json").json()["paths"]["/statecfg/1.0/greeting/{rack}"]["get"]
        assert described["parameters"][0]["description"] == "Name of a rack."
        assert "hello" in described["responses"]["200"]["content"]["application/json"]["schema"]["properties"]


def add_hook_rule(copy: Copy) -> None:
    rule = '    "tolerate": FailureRule(HookStatus.CONTINUED),\n'
    copy.insert("statecfg/remote/graph/on_failure.py", "    RETRY: FailureRule(", rule)
    copy.write("hooks/broken.hook/configuration.yaml", "{}\n")
    copy.write("hooks/broken.hook/post-create", "#!/bin/sh\nexit 1\n")
    (copy.project / "hooks/broken.hook/post-create").chmod(0o755)
    hook = "metadata: {{name: watch}}\nspec:\n  exec: {{type: broken}}\n  events: [post-create]\n  onFailure: {}\n"
    copy.write("site.yml", f"hosts: '@local'\nresources:\n  - file: {copy.project}/made\n    content: ''\n")
    copy.write("hooks/watch.yml", hook.format("abort"))
    copy.run("apply", "site.yml", "--yes", code=1)
    (copy.project / "made").unlink()
    copy.write("hooks/watch.yml", hook.format("tolerate"))
    report = json.loads(copy.run("apply", "site.yml", "--yes", "--json"))
    assert [call["status"] for call in report["hosts"]["@local"]["fired"]] == ["continued"]


def add_node_field(copy: Copy) -> None:
    line = '    report["count"] = len(report["actions"])\n'
    copy.insert("statecfg/remote/run/report.py", "    if step.reason:", line)
    copy.insert("statecfg/run/host/frames.py", "    known_after: str | None", "    count: int = 0\n")
    copy.write("site.yml", f"hosts: '@local'\nresources:\n  - file: {copy.project}/made\n    content: ''\n")
    report = json.loads(copy.run("plan", "site.yml", "--json"))
    assert report["hosts"]["@local"]["layers"][0][0]["count"] == 1
    copy.run("plan", "site.yml", "--out", "plan.json")
    report = json.loads(copy.run("apply", "plan.json", "--json"))
    assert report["hosts"]["@local"]["layers"][0][0]["count"] == 1


def add_host_field(copy: Copy) -> None:
    copy.insert("statecfg/run/report_model.py", "    peer: NotRequired[str]", "    layer_count: NotRequired[int]\n")
    line = '        self.data["layer_count"] = len(self.plan.layers)\n'
    copy.insert("statecfg/run/host/report.py", '        self.data["summary"] = self.count()', line)
    copy.write("site.yml", f"hosts: '@local'\nresources:\n  - file: {copy.project}/made\n    content: ''\n")
    for verb in (["plan"], ["apply", "--yes"]):
        report = json.loads(copy.run(*verb, "site.yml", "--json"))
        assert report["hosts"]["@local"]["layer_count"] == 1


def add_top_field(copy: Copy) -> None:
    copy.insert("statecfg/run/report_model.py", "    left_hosts: NotRequired", "    host_count: NotRequired[int]\n")
    file = copy.root / "statecfg/run/fleet.py"
    text = file.read_text()
    made = "    return make_report("
    assert text.count(made) == 1
    file.write_text(
        text.replace(made, "    report = make_report(") + '    report["host_count"] = len(hosts)\n    return report\n'
    )
    copy.write("site.yml", f"hosts: '@local'\nresources:\n  - file: {copy.project}/made\n    content: ''\n")
    for verb in (["plan"], ["apply", "--yes"]):
        assert json.loads(copy.run(*verb, "site.yml", "--json"))["host_count"] == 1


def add_host_event(copy: Copy) -> None:
    copy.insert("statecfg/remote/graph/events.py", "    ALL: Final = (BOOTED", '    TAGGED: Final = "node-tagged"\n')
    file = copy.root / "statecfg/remote/graph/events.py"
    file.write_text(file.read_text().replace("    ALL: Final = (BOOTED", "    ALL: Final = (TAGGED, BOOTED"))
    file = copy.root / "statecfg/cli/hosts.py"
    text = file.read_text()
    tag = "    record = (hosts.untag if remove else hosts.tag)(opened.store, opened.name(name), tags)\n"
    assert text.count(tag) == 1
    fire = "    host_events.fire(opened.store, HostEvent.TAGGED, record, None, projects.find(Path(name)))\n"
    imports = "    from statecfg.hooks import host_events\n    from statecfg.playbook import project as projects\n\n"
    file.write_text(text.replace(tag, tag + imports + fire))
    copy.write("hooks/note.hook/configuration.yaml", "{}\n")
    copy.write("hooks/note.hook/node-tagged", '#!/bin/sh\necho \'{"node": {"metadata": {"update": {"noted": 1}}}}\'\n')
    (copy.project / "hooks/note.hook/node-tagged").chmod(0o755)
    copy.write("inventory.yml", "hosts: {web1: }\n")
    copy.run("hook", "create", "note", "note")
    copy.run("hosts", "tag", "web1", "blue")
    assert "noted" in copy.run("hosts", "show", "web1")


CASES: Mapping[str, Callable[[Copy], None]] = {
    "Node type": add_node_type,
    "Attribute that is only validated or compared": add_attribute,
    "Attribute with its own action": add_attribute_with_action,
    "Transport": add_transport,
    "Verb of the command line": add_verb,
    "Inventory format": add_inventory_format,
    "Migration of the store": add_migration,
    "API route": add_api_route,
    "Field of a node in the report": add_node_field,
    "Field of a host in the report": add_host_field,
    "Field of the report's top level": add_top_field,
    "Host event": add_host_event,
    "Failure rule of hooks": add_hook_rule,
}


def test_each_addition_has_a_test_case() -> None:
    assert list(additions()) == list(CASES)


@pytest.mark.parametrize("addition", CASES)
def test_the_files_named_for_an_addition_suffice(copy: Copy, addition: str) -> None:
    allowed = additions()[addition]
    assert 1 <= len(allowed) <= 2
    before = files(copy.root)
    CASES[addition](copy)
    after = files(copy.root)
    changed = {path for path in after if after[path] != before.get(path)}
    assert {path: any(fnmatch(path, pattern) for pattern in allowed) for path in changed} == dict.fromkeys(
        changed, True
    )
    assert all(any(fnmatch(path, pattern) for path in changed) for pattern in allowed)
