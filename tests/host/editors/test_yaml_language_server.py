"""The real yaml-language-server understands the schemas of a new project: errors, completion and descriptions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.host.command import run
from tests.host.editors.language_server import LanguageServer

VHOST = '''
from statecfg import Port, node_type


@node_type
def vhost(name: str, *, port: Port, tls: bool = False) -> None:
    """Manage a virtual host.

    :param port: the port that clients connect to
    """
'''
WEB = """
hosts: web
vars: {root: /srv}
resources:
  - package: nginx
  - directory: "{{ root }}/www"
"""
RESOURCES = "hosts: web\nresources:\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new project with a node type, a playbook and a host of its own."""
    directory = tmp_path_factory.mktemp("project")
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert run(["init", "."], directory, environ).returncode == 0
    (directory / "resources/vhost.py").write_text(VHOST)
    (directory / "playbooks/web.yml").write_text(WEB)
    with (directory / "inventory.yml").open("a") as inventory:
        inventory.write("  web1:\ngroups:\n  web: {hosts: [web1]}\n")
    written = run(["schema", "--write"], directory, environ)
    changed = [".statecfg/playbook.json", ".statecfg/include.json", ".statecfg/role.json", "statecfg_project.pyi"]
    assert written.stdout == "".join(f"wrote {name}\n" for name in changed), written.stderr
    return directory


@pytest.fixture(scope="module")
def server(project: Path) -> Iterator[LanguageServer]:
    server = LanguageServer(project)
    yield server
    server.close()


class Editor:
    """An editor with a playbook that has the first line of `statecfg init`."""

    def __init__(self, server: LanguageServer) -> None:
        self.server = server
        self.first = (server.project / "playbooks/hello.yml").read_text().splitlines(keepends=True)[0]
        self.count = 0

    def errors(self, text: str) -> list[tuple[int, str]]:
        """Return the line in `text`, from 1, and the message of each error."""
        self.count += 1
        problems = self.server.open(f"playbooks/edited{self.count}.yml", self.first + text)
        return [(item["range"]["start"]["line"], item["message"]) for item in problems]

    def _at_mark(self, text: str) -> tuple[str, int, int]:
        """Open a text, and return the file and the position of the mark `|` in it."""
        before, _, after = text.partition("|")
        self.errors(before + after)
        lines = (self.first + before).split("\n")
        return f"playbooks/edited{self.count}.yml", len(lines) - 1, len(lines[-1])

    def complete(self, text: str) -> dict[str, Any]:
        return self.server.complete(*self._at_mark(text))

    def hover(self, text: str) -> str:
        return self.server.hover(*self._at_mark(text))


@pytest.fixture(scope="module")
def editor(server: LanguageServer) -> Editor:
    return Editor(server)


ERRORS = {
    "an unknown attribute": ("  - file: /etc/motd\n    moed: '0644'\n", (4, "Property moed is not allowed.")),
    "an unknown type": ("  - pakage: nginx\n", (3, "Property pakage is not allowed.")),
    "no type": ("  - nginx\n", (3, "The entry has no node type. Begin it with one, such as `- package: nginx`.")),
    "a relative path": ("  - file: etc/motd\n", (3, "Expected an absolute path.")),
    "a wrong mode": ("  - file: /etc/motd\n    mode: '64'\n", (4, 'Expected a mode such as "0644"')),
    "a number as a mode": (
        "  - file: /etc/motd\n    mode: 0644\n",
        (4, 'Incorrect type. Expected "string | secret".'),
    ),
    "an unknown choice": (
        "  - service: nginx\n    on_change: reboot\n",
        (4, 'Value is not accepted. Valid values: "restart", "reload".'),
    ),
    "a missing attribute of an own type": ("  - vhost: shop\n", (3, 'Missing property "port".')),
    "a wrong attribute of a type in Hy": (
        "  - process: /bin/x\n    user: ann\n    group: ann\n    env: {}\n    args: []\n    nosuch: 1\n",
        (8, "Property nosuch is not allowed."),
    ),
}


@pytest.mark.parametrize(("text", "error"), ERRORS.values(), ids=ERRORS)
def test_errors_appear_at_their_line(editor: Editor, text: str, error: tuple[int, str]) -> None:
    line, message = error
    found = editor.errors(RESOURCES + text)
    assert any(at == line and shown.startswith(message) for at, shown in found), found


def test_valid_playbooks_have_no_errors(editor: Editor, project: Path) -> None:
    for name in ("hello.yml", "web.yml"):
        assert editor.errors((project / "playbooks" / name).read_text()) == []
    secret = "  - user: ann\n    password_hash: !secret {env: HASH}\n    home: '{{ home }}'\n    shell:\n"
    assert editor.errors(RESOURCES + secret + "  - vhost: shop\n    port: '{{ port }}'\n    tls: true\n") == []


def test_other_files_of_a_new_project_are_checked(server: LanguageServer, project: Path) -> None:
    text = (project / "inventory.yml").read_text()
    assert server.open("inventory.yml", text) == []
    (problem,) = server.open("wrong.yml", text + "  db: {host: [web1]}\n")
    assert problem["message"] == "Property host is not allowed."


def test_node_types_are_completed(editor: Editor) -> None:
    for start in ("  - |\n", "  - fi|\n"):
        found = editor.complete(RESOURCES + start)
        assert {"file", "process", "vhost", "include", "resources", "for_each"} <= set(found)
        assert found["file"]["insertText"] == "file: "
        assert "Manage a file" in str(found["file"]["documentation"])


def test_editor_offers_the_attributes_and_options_of_a_node_type(editor: Editor) -> None:
    found = editor.complete(RESOURCES + "  - file: /etc/motd\n    |\n")
    assert {"mode", "owner", "content", "requires", "when"} <= set(found)
    assert not {"package", "running", "service"} & set(found)
    assert "permission bits" in str(found["mode"]["documentation"])
    own = editor.complete(RESOURCES + "  - vhost: shop\n    |\n")
    assert {"port", "tls"} <= set(own) and "mode" not in own


def test_editor_offers_the_values_of_an_attribute(editor: Editor) -> None:
    assert {"restart", "reload"} <= set(editor.complete(RESOURCES + "  - service: nginx\n    on_change: |\n"))
    assert {"true", "false"} <= set(editor.complete(RESOURCES + "  - service: nginx\n    running: |\n"))


@pytest.mark.parametrize("start", ["requires: |", "requires: [|]", "restart_on:\n      - |"])
def test_names_of_nodes_are_completed(editor: Editor, start: str) -> None:
    found = editor.complete(f"{RESOURCES}  - service: nginx\n    {start}\n")
    assert found["package:nginx"]["insertText"] == "package:nginx"
    assert found["directory:{{ root }}/www"]["insertText"] == '"directory:{{ root }}/www"'


def test_hosts_and_keys_of_plays_are_completed(editor: Editor) -> None:
    found = editor.complete("hosts: |\n")
    assert {"@local", "all", "web", "web1"} <= set(found) and found["@local"]["insertText"] == '"@local"'
    assert {"vars", "resources", "include", "service"} <= set(editor.complete("hosts: web\n|\n"))


def test_editor_shows_the_description_of_a_key(editor: Editor) -> None:
    file = editor.hover(RESOURCES + "  - fi|le: /etc/motd\n")
    assert file.startswith("Manage a file") and "```yaml\n- file: " in file
    assert editor.hover(RESOURCES + "  - file: /etc/motd\n    mo|de: '0644'\n").startswith("permission bits")
    assert editor.hover(RESOURCES + "  - vhost: shop\n    po|rt: 80\n").startswith("the port that clients")
    assert "A host, a group or a pattern" in editor.hover("ho|sts: web\n")
