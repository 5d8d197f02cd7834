"""Validators run in plans: on the planned content, among the planned files, and without a trace on the host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.host.run.site import Site
from tests.lab import Host

GOOD = """#!/bin/sh
# Accept a file whose includes exist and whose only words are "ok" and "include".
echo "checked $1" >> /var/log/checker.log
echo left > /run/checker.pid
test ! -e /etc/checker/stop || exit 3
while read -r word value; do
    case "$word" in
        include) test -e "$(dirname "$1")/$value" || { echo "no $value for $1" >&2; exit 1; } ;;
        ok) ;;
        *) echo "unknown word $word in $1"; exit 1 ;;
    esac
done < "$1"
"""


@pytest.fixture(scope="module", autouse=True)
def checker(light_host: Host) -> None:
    light_host.write("/usr/local/bin/checker", GOOD, 0o755)
    light_host.run(["mkdir", "-p", "/etc/checker"])


@pytest.fixture
def site(tmp_path: Path, light_host: Host, request: pytest.FixtureRequest) -> Site:
    light_host.run(["sh", "-c", "rm -rf /etc/checker/* /var/log/checker.log /run/checker.pid /var/lib/statecfg"])
    return Site(tmp_path, light_host, request.node.name.replace("_", "-"))


def write(site: Site, *lines: str) -> None:
    (site.base / "site.yml").write_text("hosts: all\nresources:\n" + "".join(f"  - {line}\n" for line in lines))


def checked(name: str, content: str, more: str = "") -> str:
    return f"{{file: /etc/checker/{name}, content: {json.dumps(content)}, validate: [checker, '{{}}']{more}}}"


def node(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(node for layer in report["layers"] for node in layer if node["name"].endswith(name))


def test_wrong_content_fails_in_the_plan(site: Site, light_host: Host) -> None:
    write(site, checked("a.conf", "ok\nwrong\n"), "{file: /etc/checker/other, content: text}")
    planned = node(site.report("plan", "site.yml", code=1), "a.conf")
    assert planned["outcome"] == "failed"
    assert planned["reason"] == "write: checker rejects the new content: unknown word wrong in /etc/checker/a.conf"
    site("apply", "site.yml", "--yes", code=1)
    assert light_host.run(["ls", "-A", "/etc/checker"]).stdout == ""
    assert not light_host.path("/var/log/checker.log").exists()
    assert not light_host.path("/run/checker.pid").exists()


def test_right_content_passes_and_the_validator_leaves_nothing_in_a_plan(site: Site, light_host: Host) -> None:
    write(site, checked("a.conf", "ok\n"))
    planned = node(site.report("plan", "site.yml"), "a.conf")
    assert planned["outcome"] == "changed"
    assert "reason" not in planned
    assert not light_host.path("/var/log/checker.log").exists()
    assert not light_host.path("/run/checker.pid").exists()
    site("apply", "site.yml", "--yes")
    assert light_host.read("/var/log/checker.log").count("\n") == 1


def test_a_validator_sees_mode_and_owner_of_the_new_file(site: Site, light_host: Host) -> None:
    """visudo and ssh refuse files with other modes."""
    program = "#!/bin/sh\ntest \"$(stat -c '%U %a' \"$1\")\" = 'root 440'\n"
    light_host.write("/usr/local/bin/strict", program, 0o755)
    text = "{file: /etc/checker/a.conf, content: text, mode: '%s', validate: [strict, '{}']}"
    write(site, text % "0440")
    assert "reason" not in node_of(site, 0)
    write(site, text % "0644")
    assert "strict rejects the new content" in node_of(site, 1)["reason"]


def node_of(site: Site, code: int) -> dict[str, Any]:
    return node(site.report("plan", "site.yml", code=code), "a.conf")


def test_a_validator_sees_the_planned_files(site: Site, light_host: Host) -> None:
    """It sees a new file next to the content, a removed file, and a file behind a planned link."""
    light_host.write("/etc/checker/stop", "")
    nodes = [
        "{file: /etc/checker/part, content: text}",
        "{remove: /etc/checker/stop}",
        "{symlink: /etc/checker/linked, target: part, requires: ['file:/etc/checker/part']}",
        "{directory: /etc/checker/d}",
        "{file: /etc/checker/d/x, content: text, requires: ['directory:/etc/checker/d']}",
    ]
    names = [
        "file:/etc/checker/part",
        "remove:/etc/checker/stop",
        "symlink:/etc/checker/linked",
        "file:/etc/checker/d/x",
    ]
    text = "ok\ninclude part\ninclude linked\ninclude d/x\n"
    write(site, *nodes, checked("a.conf", text, f", requires: {json.dumps(names)}"))
    assert "reason" not in node(site.report("plan", "site.yml"), "a.conf")
    write(site, *nodes[1:2], checked("a.conf", text, ", requires: ['remove:/etc/checker/stop']"))
    assert "no part for /etc/checker/a.conf" in node(site.report("plan", "site.yml", code=1), "a.conf")["reason"]
    assert light_host.path("/etc/checker/stop").exists()
    write(site, *nodes, checked("a.conf", text, f", requires: {json.dumps(names)}"))
    site("apply", "site.yml", "--yes")


def test_what_a_command_may_change_leaves_the_check_to_the_apply(site: Site, light_host: Host) -> None:
    command = "{command: make, argv: [touch, /etc/checker/part], creates: /etc/checker/part}"
    write(site, command, checked("a.conf", "include part\n", ", requires: ['command:make']"))
    planned = node(site.report("plan", "site.yml"), "a.conf")
    assert (planned["outcome"], planned["reason"]) == (
        "changed",
        "checker does not accept the present state; the apply checks the result: known after command:make",
    )
    assert "known after command:make" in site("plan", "site.yml").out
    applied = node(site.report("apply", "site.yml", "--yes"), "a.conf")
    assert applied["outcome"] == "changed"
    assert "reason" not in applied


def test_a_missing_program_fails_in_the_plan(site: Site) -> None:
    write(site, "{file: /etc/checker/a.conf, content: text, validate: [nosuchprogram, '{}']}")
    reason = node(site.report("plan", "site.yml", code=1), "a.conf")["reason"]
    assert "nosuchprogram" in reason
    assert "No such file or directory" in reason


def test_the_output_of_a_validator_shows_no_secret(site: Site) -> None:
    """The validator prints a part of the secret, which no mask would find."""
    (site.base / "site.yml").write_text(
        "hosts: all\nvars:\n  word: !secret {env: WORD}\nresources:\n"
        "  - file: /etc/checker/a.conf\n    content: \"ok\\n{{ word }}-tail more\\n\"\n    validate: [checker, '{}']\n"
    )
    ran = site("plan", "site.yml", "--json", code=1, WORD="correct-horse-battery")
    assert "horse" not in ran.out + ran.err
    assert "its output is not shown" in node(ran.json()["hosts"][site.host.name], "a.conf")["reason"]


def test_edits_are_checked_too(site: Site, light_host: Host) -> None:
    light_host.write("/etc/checker/a.conf", "ok\n")
    for edit in ("line_in_file: /etc/checker/a.conf, line: wrong", "block_in_file: /etc/checker/a.conf, block: wrong"):
        write(site, f"{{{edit}, validate: [checker, '{{}}']}}")
        planned = site.report("plan", "site.yml", code=1)["layers"][0][0]
        assert planned["outcome"] == "failed", planned
    assert light_host.read("/etc/checker/a.conf") == "ok\n"


def test_rules_of_sudo_are_checked(site: Site, light_host: Host) -> None:
    light_host.write(
        "/usr/local/bin/visudo", '#!/bin/sh\ngrep -q broken "$2" && echo parse error && exit 1\nexit 0\n', 0o755
    )
    light_host.run(["mkdir", "-p", "/etc/sudoers.d"])
    for text, code in (("broken\n", 1), ("fine\n", 0)):
        write(
            site,
            f"{{file: /etc/sudoers.d/x, content: {json.dumps(text)}, mode: '0440', validate: [visudo, -cf, '{{}}']}}",
        )
        site.report("plan", "site.yml", code=code)


def test_a_killed_plan_leaves_nothing(site: Site, light_host: Host) -> None:
    light_host.write("/usr/local/bin/slow", '#!/bin/sh\ntouch "$1.seen" /var/tmp/seen\nkill -9 $PPID $$\n', 0o755)
    write(site, "{file: /etc/checker/a.conf, content: text, validate: [slow, '{}']}")
    site("plan", "site.yml", code=None)
    assert light_host.run(["ls", "-A", "/etc/checker"]).stdout == ""
    assert not light_host.path("/var/tmp/seen").exists()
