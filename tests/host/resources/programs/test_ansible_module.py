"""Modules of ansible-core on a light host: plans come true, drift is found, and secrets stay secret."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.resources.text.test_text_edits import SECRET, Site, nodes
from tests.lab import Host

# Called by a module with the path of its temporary file. It keeps what other users can see, and the modes of the
# files of the program that runs the module.
SPY = """#!/bin/sh
cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' '\\n' > {place}/seen
find /tmp/.statecfg-* -printf '%m %u %f\\n' | sort -u > {place}/modes
"""


@pytest.fixture
def site(light_host: Host, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(light_host, tmp_path, f"/srv/{request.node.name}")
    light_host.run(["mkdir", "-p", found.place])
    yield found
    found.clean()


def run(name: str, module: str, arguments: str, *more: str) -> str:
    """Return a node in YAML that runs a module."""
    lines = [f"module: {module}", f"arguments: {{{arguments}}}", *more]
    return f"  - ansible_module: {name}\n" + "".join(f"    {line}\n" for line in lines)


def one(report: dict[str, Any], name: str) -> dict[str, Any]:
    return nodes(report)[f"ansible_module:{name}"]


def test_modules_come_true_find_drift_and_stay_after_a_destroy(site: Site) -> None:
    at = site.place
    site.write("ini", "[a]\nport = 80\n")
    resources = "".join([
        run("line", "lineinfile", f'path: {at}/lines, line: "a = 1", create: true, mode: "0600"'),
        run("block", "ansible.builtin.blockinfile", f'path: {at}/block, block: "one\\ntwo", create: true'),
        run("replace", "replace", f'path: {at}/ini, regexp: "port = .*", replace: "port = 81"'),
        run("directory", "file", f'path: {at}/d, state: directory, mode: "0750", owner: daemon'),
        run("link", "file", f"src: {at}/ini, dest: {at}/link, state: link"),
        run("group", "group", "name: tests-group"),
        run("user", "user", "name: tests-user, group: tests-group", "requires: [ansible_module:group]"),
        run("stat", "stat", "path: /etc/passwd"),
    ])  # fmt: skip
    planned = nodes(site.report("plan", resources))
    assert planned["ansible_module:user"]["known_after"] == "ansible_module:group"
    assert "+a = 1" in planned["ansible_module:line"]["changes"][0]["diff"]
    assert planned["ansible_module:stat"]["outcome"] == "unchanged"
    applied = nodes(site.report("apply"))
    assert {name for name, node in applied.items() if node["outcome"] != "changed"} == {"ansible_module:stat"}
    for name in set(planned) - {"ansible_module:user"}:
        assert applied[name]["changes"] == planned[name]["changes"], name
    assert site.read("lines") == "a = 1\n" and "one\ntwo" in site.read("block")
    assert site.read("ini") == "[a]\nport = 81\n"
    assert site.host.path(f"{at}/lines").stat().st_mode & 0o777 == 0o600
    assert "tests-group" in site.host.run(["id", "tests-user"]).stdout
    assert "8 unchanged" in site.say("apply").out
    site.write("lines", "a = 1\nb = 2\n")
    site.write("ini", "[a]\nport = 82\n")
    drifted = nodes(site.report("plan"))
    changed = {name for name, node in drifted.items() if node["outcome"] == "changed"}
    assert changed == {"ansible_module:line", "ansible_module:replace"}
    mode = drifted["ansible_module:line"]["changes"]  # the new file has the usual mode
    assert mode and "b = 2" not in str(mode)
    out = site.say("destroy").out
    assert "made by the Ansible module ansible.builtin.lineinfile, which can't undo it: it stays" in out
    assert site.read("lines") == "a = 1\nb = 2\n"


def test_a_former_secret_is_not_shown_when_a_new_one_replaces_it(site: Site) -> None:
    """The module reports the former content. What the secret of the playbook replaces is probably a secret, too."""
    former = "former-s3cret-word"
    word = '"password = {{ word }}"'
    site.write("line", f"user = shop\npassword = {former}\n")
    site.write("block", f"# BEGIN ANSIBLE MANAGED BLOCK\npassword = {former}\n# END ANSIBLE MANAGED BLOCK\n")
    resources = run("line", "lineinfile", f'path: {site.place}/line, regexp: "^password", line: {word}')
    resources += run("block", "blockinfile", f"path: {site.place}/block, block: {word}")
    said = [site.say(verb, resources, *more) for verb in ("plan", "apply") for more in ((), ("--json",))]
    assert site.read("line") == f"user = shop\npassword = {SECRET}\n"
    shown = "".join(ran.out + ran.err for ran in said)
    assert SECRET not in shown
    assert former not in shown


def test_plan_and_outcome_mark_what_ansible_does(site: Site) -> None:
    line = run("line", "lineinfile", f"path: {site.place}/f, line: a, create: true")
    text = "runs the Ansible module ansible.builtin.lineinfile; statecfg can't undo it"
    assert text in site.say("plan", line).out
    assert text in site.say("apply", line).out


def test_a_module_without_check_mode_is_known_after_it_has_run(site: Site) -> None:
    resources = run("wait", "wait_for", "path: /etc/passwd, timeout: 1")
    resources += run("temporary", "tempfile", f"path: {site.place}, prefix: made")
    resources += f"  - file: {site.place}/f\n    content: a\n    requires: [ansible_module:temporary]\n"
    resources += run("line", "lineinfile", f"path: {site.place}/f, line: b", "effects: {}")
    said = site.say("plan", resources).out
    assert "ansible_module:wait  known after it has run" in said and "it has no complete check mode" in said
    planned = nodes(site.report("plan"))
    assert planned["ansible_module:wait"]["outcome"] == "unknown"
    assert planned["ansible_module:line"]["outcome"] == "unknown"
    applied = nodes(site.report("apply"))
    assert applied["ansible_module:wait"]["outcome"] == "unchanged"
    assert applied["ansible_module:wait"]["actions"][0]["status"] == "ok"
    assert applied["ansible_module:temporary"]["outcome"] == "changed"
    assert site.host.run(["sh", "-c", f"ls {site.place}/made* | wc -l"]).stdout == "1\n"


def test_a_handler_runs_only_if_a_node_changes(site: Site) -> None:
    at = site.place
    settings = f"  - file: {at}/settings\n    content: {{}}\n"
    handler = run("touch", "file", f"path: {at}/touched, state: touch", f'restart_on: ["file:{at}/settings"]')
    handler += "    when_triggered: true\n"
    site.say("apply", settings.format("one") + handler)
    assert site.exists("touched")
    site.host.run(["rm", f"{at}/touched"])
    assert "2 unchanged" in site.say("apply", settings.format("one") + handler).out
    planned = one(site.report("plan", settings.format("two") + handler), "touch")
    assert (planned["outcome"], planned["triggered_by"]) == ("changed", [f"file:{at}/settings"])
    site.say("apply")
    assert site.exists("touched")


def test_a_module_that_always_reports_a_change_does_not_converge(site: Site) -> None:
    touch = run("touch", "file", f"path: {site.place}/f, state: touch")
    failed = one(site.report("apply", touch, code=1), "touch")
    assert failed["outcome"] == "failed" and "did not converge" in failed["reason"]
    assert one(site.report("apply", touch + "    read_back: false\n"), "touch")["outcome"] == "changed"


def test_a_module_that_fails_names_its_reason(site: Site) -> None:
    resources = run("line", "lineinfile", f"path: {site.place}/missing, line: a")
    failed = one(site.report("plan", resources, code=1), "line")
    assert failed["outcome"] == "failed"
    assert "the Ansible module ansible.builtin.lineinfile failed: Destination" in failed["reason"]
    resources = run("wait", "wait_for", f"path: {site.place}/missing, timeout: 1, msg: it never came")
    failed = one(site.report("apply", resources, code=1), "wait")
    assert failed["reason"] == "run_module: the Ansible module ansible.builtin.wait_for failed: it never came"


def test_a_module_runs_as_another_user_and_leaves_no_files(site: Site) -> None:
    site.host.run(["chown", "daemon", site.place])
    site.come_true(run("line", "lineinfile", f"path: {site.place}/f, line: a, create: true", "user: daemon"))
    assert site.host.run(["stat", "-c", "%U", f"{site.place}/f"]).stdout == "daemon\n"
    assert site.host.run(["sh", "-c", "ls -A /tmp | grep -c '^[.]statecfg-' || :"]).stdout == "0\n"


def test_secrets_are_in_no_argument_environment_file_or_report(site: Site) -> None:
    site.write("spy", SPY.format(place=site.place))
    site.host.run(["chmod", "0755", f"{site.place}/spy"])
    line = f'path: {site.place}/f, line: "word = {{{{ word }}}}", create: true, validate: {site.place}/spy %s'
    resources = run("line", "lineinfile", line) + run("user", "user", "name: tests-secret, password: $6$a$hidden-hash")
    outputs = [site.say("plan", resources, "--diff"), site.say("plan", "", "--json")]
    outputs += [site.say("apply", "", "--json"), site.say("plan", "", "-v"), site.say("destroy")]
    assert site.read("f") == f"word = {SECRET}\n"
    assert "$6$a$hidden-hash" in site.host.read("/etc/shadow")
    for text in (SECRET, "hidden-hash"):
        assert not any(text in ran.out + ran.err for ran in outputs)
        site.host.run(["sh", "-c", f"! grep -r {text} /var/lib/statecfg /var/log"])
    seen = site.read("seen")
    assert "-B" in seen and SECRET not in seen
    modes = [row.split() for row in site.read("modes").splitlines()]
    assert {row[0] for row in modes if not row[2].startswith(".statecfg-") and row[2] != "own"} == {"600"}
    assert {row[0] for row in modes if row[2].startswith(".statecfg-") or row[2] == "own"} == {"700"}
    assert {row[1] for row in modes} == {"root"}


def test_an_unknown_module_is_refused_with_its_line(site: Site) -> None:
    ran = site.say("plan", run("line", "lineinfil", "path: /f"), code=5)
    assert "site.yml:5:5" in ran.out + ran.err and "did you mean `lineinfile`?" in ran.out + ran.err
