"""Nodes that a real host repeats for the items of a list: plan, saved plan, apply, prune, undo and triggers."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import ROOT
from tests.host.cli.test_terminal import Terminal
from tests.host.command import statecfg
from tests.host.run.test_decisions import Deciding, outcomes
from tests.lab import Host

YAML = """\
hosts: all
resources:
  - directory: {place}/conf
  - file: {place}/conf/new.conf
    content: new
  - file: "{{{{ host_item }}}}.mark"
    provides: marks
    content: "{{{{ host_item }}}}\\n"
    for_each_host: {{glob: "{place}/conf/*.conf"}}
    requires: ["file:{place}/conf/new.conf"]
  - command: count
    shell: echo done >> {place}/log
    restart_on: [marks]
    effects: {{}}
  - file: "{place}/of-{{{{ host_item.name }}}}"
    content: "{{{{ host_item.home }}}}\\n"
    for_each_host: {{users: {{max_uid: 0}}}}
    when_host: {{path: "{{{{ host_item.home }}}}", is: directory}}
"""
PYTHON = """\
from statecfg import host_item, play
from statecfg.resources import command, directory, file

@play(hosts="all")
def site(host):
    new = file("{place}/conf/new.conf", content="new")
    marks = file(
        f"{{host_item}}.mark", provides="marks", content=f"{{host_item}}\\n", requires=[new],
        for_each_host={{"glob": "{place}/conf/*.conf"}},
    )
    return [
        directory("{place}/conf"),
        command("count", shell="echo done >> {place}/log", restart_on=[marks], effects={{}}),
        file(
            f"{place}/of-{{host_item.name}}",
            content=f"{{host_item.home}}\\n",
            for_each_host={{"users": {{"max_uid": 0}}}},
            when_host={{"path": host_item.home, "is": "directory"}},
        ),
    ]
"""
HY = """\
(require statecfg.dialects.hy [defplay])
(import statecfg [host-item]
        statecfg.resources [command directory file])

(defplay site [host] {{:hosts "all"}}
  (setv new (file "{place}/conf/new.conf" {{:content "new"}})
        marks (file f"{{host-item}}.mark" {{:provides "marks" :content f"{{host-item}}\\n" :requires [new]
                               :for-each-host {{:glob "{place}/conf/*.conf"}}}}))
  [(directory "{place}/conf")
   (command "count" {{:shell "echo done >> {place}/log" :restart-on [marks] :effects {{}}}})
   (file f"{place}/of-{{host-item.name}}"
         {{:content f"{{host-item.home}}\\n"
          :for-each-host {{:users {{:max-uid 0}}}}
          :when-host {{:path host-item.home :is "directory"}}}})])
"""


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Deciding:
    made = Deciding(tmp_path, light_host, place.rpartition("/")[2])
    made.place = place
    made.fresh()
    made.write(YAML)
    return made


def lay(site: Deciding, *names: str) -> None:
    """Create files with mode 0644 in the directory that the playbook lists."""
    directory = site.host.path(f"{site.place}/conf")
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_text(name)
        (directory / name).chmod(0o644)


@pytest.mark.parametrize(("text", "file"), [(YAML, "site.yml"), (PYTHON, "site.py"), (HY, "site.hy")])
def test_plan_is_what_apply_does_in_each_dialect(site: Deciding, text: str, file: str) -> None:
    lay(site, "b.conf", "a.conf", "c.txt")
    site.write(text, file)
    planned = site.run("plan")
    marks = [f"marks[{site.place}/conf/{name}.conf]".replace(f"{site.place}/", "") for name in ("a", "b", "new")]
    assert outcomes(planned) == {
        "directory:conf": "unchanged", "file:conf/new.conf": "changed", "marks": "excluded",
        **dict.fromkeys(marks, "changed"), "command:count": "changed",
        "file:of-{host_item.name}": "excluded", "file:of-root": "changed",
    }  # fmt: skip
    assert planned["marks"]["excluded"].startswith("its items: 3: ")
    assert planned["command:count"]["triggered_by"] == [f"marks[{site.place}/conf/{name}.conf]" for name in "ab"] + [
        f"marks[{site.place}/conf/new.conf]"
    ]
    assert outcomes(site.run("apply")) == outcomes(planned)
    assert site.host.read(f"{site.place}/conf/new.conf.mark") == f"{site.place}/conf/new.conf\n"
    assert site.host.read(f"{site.place}/of-root") == "/root\n" and site.exists("log")
    assert site.managed() == {"directory:conf", "file:conf/new.conf", *marks, "command:count", "file:of-root"}
    again = {name: "unchanged" if outcome == "changed" else outcome for name, outcome in outcomes(planned).items()}
    assert outcomes(site.run("plan")) == outcomes(site.run("apply")) == outcomes(site.run("verify")) == again
    assert "Nothing to do" in site("plan", file).out
    site.run("destroy")
    assert sorted(path.name for path in site.host.path(f"{site.place}/conf").iterdir()) == ["a.conf", "b.conf", "c.txt"]
    assert site.managed() == set()


LEAVING = """\
hosts: all
resources:
  - file: "{{{{ host_item }}}}"
    content: ours
    for_each_host: {{glob: "{place}/conf/*.conf"}}
"""


def test_item_that_leaves_the_list_stays_until_a_prune_which_restores_it(site: Deciding) -> None:
    site.write("""\
hosts: all
resources:
  - line_in_file: {place}/hosts
    line: "{{{{ host_item }}}}"
    for_each_host: {{command: [cat, {place}/list], read_only: true, reads: [{place}/list]}}
  - file: {place}/of/{{{{ host_item }}}}
    content: ours
    for_each_host: {{command: [cat, {place}/list], read_only: true, reads: [{place}/list]}}
""")
    site.host.run(["mkdir", "-p", f"{site.place}/of"])
    site.host.write(f"{site.place}/hosts", "first\n")
    site.host.write(f"{site.place}/of/two", "theirs")
    site.host.write(f"{site.place}/list", "one\ntwo\n")
    site.run("apply")
    assert site.host.read(f"{site.place}/hosts") == "first\none\ntwo\n"
    site.host.write(f"{site.place}/list", "one\n")
    for verb in ("plan", "apply"):
        report = site.report(verb, "site.yml", *(["--yes"] if verb == "apply" else []))
        assert f"file:{site.place}/of/two" in [node["name"] for layer in report["left"] for node in layer]
        assert all(node["outcome"] == "unchanged" for layer in report["layers"] for node in layer)
    assert site.host.read(f"{site.place}/of/two") == "ours" and "file:of/two" in site.managed()

    planned = site.run("plan", "--prune")
    assert outcomes(planned)["file:of/two"] == "changed" and "line_in_file" in str(planned)
    assert outcomes(site.run("apply", "--prune")) == outcomes(planned)
    assert site.host.read(f"{site.place}/of/two") == "theirs" and site.host.read(f"{site.place}/of/one") == "ours"
    assert site.host.read(f"{site.place}/hosts") == "first\none\n"
    assert "file:of/two" not in site.managed() and "file:of/one" in site.managed()
    site.run("destroy")
    assert not site.exists("of/one") and site.host.read(f"{site.place}/hosts") == "first\n"


@pytest.mark.parametrize("verb", [["apply", "--prune"], ["prune"]])
def test_list_that_fails_removes_nothing(site: Deciding, verb: list[str]) -> None:
    site.write("""\
hosts: all
resources:
  - file: {place}/{{{{ host_item }}}}
    content: ours
    for_each_host: {{command: [cat, {place}/list], read_only: true, reads: [{place}/list]}}
""")
    site.host.run(["mkdir", "-p", site.place])
    site.host.write(f"{site.place}/list", "one\ntwo\n")
    site.run("apply")
    for text in (None, "one\n../two\n", "one\ntwo\x07\n", "one\none\x00\n", "-x\n" * 1 + "a" * 300 + "\n"):
        site.host.run(["rm", "-f", f"{site.place}/list"])
        if text is not None:
            site.host.write(f"{site.place}/list", text)
        planned = site.run("plan", "--prune", code=1)
        failed = planned["file:{host_item}"]
        assert failed["outcome"] == "failed" and "its " in failed["reason"], text
        assert failed["reason"].endswith("2 resources of earlier runs stay until its items are known")
        site.run(*verb, code=1 if verb[0] == "apply" else 0)
        assert site.exists("one") and site.exists("two") and {"file:one", "file:two"} <= site.managed()
    site.host.write(f"{site.place}/list", "one\n")
    site.run(*verb)
    assert site.exists("one") and not site.exists("two") and site.managed() == {"file:one"}


def test_saved_plan_is_refused_if_the_items_change(site: Deciding) -> None:
    lay(site, "a.conf")
    site.write(LEAVING)
    site("plan", "site.yml", "--out", "first.plan")
    assert "its items: 1" in statecfg("show", "first.plan", cwd=site.base).out
    lay(site, "b.conf")
    refused = site("apply", "first.plan", "--yes", code=6)
    assert "file:{host_item}" in refused.out + refused.err and site.host.read(f"{site.place}/conf/a.conf") == "a.conf"
    site.run("apply")
    site("plan", "site.yml", "--out", "second.plan")
    site.host.write(f"{site.place}/conf/c.conf", "ours")  # as defined: only the list differs
    refused = site("apply", "second.plan", "--yes", code=6)
    assert "file:{host_item}" in refused.out + refused.err
    site.host.run(["rm", f"{site.place}/conf/c.conf"])
    site("apply", "second.plan", "--yes")


UNKNOWN = """\
hosts: all
resources:
  - command: build
    shell: mkdir -p {place}/conf && touch {place}/conf/{{{{ made }}}}.conf
    creates: {place}/conf/{{{{ made }}}}.conf
  - file: "{{{{ host_item }}}}.mark"
    provides: marks
    content: made
    for_each_host: {{glob: "{place}/conf/*.conf"}}
    requires: ["command:build"]
  - command: count
    shell: echo done >> {place}/log
    restart_on: [marks]
    effects: {{}}
  - file: {place}/after
    content: hello
    requires: [marks]
"""


def test_items_are_known_after_the_node_that_decides_them(site: Deciding) -> None:
    site.write(UNKNOWN.replace("{{{{ made }}}}", "one"))
    planned = site.run("plan")
    assert planned["marks"]["known_after"] == "command:build" and "count" in str(planned)
    applied = site.run("apply")
    assert outcomes(applied) == {
        "command:build": "changed", "marks": "excluded", "marks[conf/one.conf]": "changed",
        "command:count": "changed", "file:after": "changed",
    }  # fmt: skip
    assert site.host.read(f"{site.place}/conf/one.conf.mark") == "made" and site.exists("log")
    assert "marks[conf/one.conf]" in site.managed() and "marks" not in site.managed()
    again = outcomes(site.run("plan"))
    assert again["marks[conf/one.conf]"] == again["command:count"] == "unchanged"

    site.write(UNKNOWN.replace("{{{{ made }}}}", "two"))
    pruned = site.run("plan", "--prune")
    assert "1 resource of earlier runs stays" in pruned["marks"]["reason"]
    applied = site.run("apply", "--prune")
    assert outcomes(applied)["marks[conf/two.conf]"] == "changed"
    assert outcomes(applied)["marks[conf/one.conf]"] == "unchanged"
    assert site.exists("conf/one.conf.mark")
    site.host.run(["rm", f"{site.place}/conf/one.conf"])
    assert outcomes(site.run("apply", "--prune"))["marks[conf/one.conf]"] == "changed"
    assert not site.exists("conf/one.conf.mark") and site.exists("conf/two.conf.mark")
    site.run("destroy")
    assert not site.exists("conf/two.conf.mark") and site.managed() == set()


def test_item_and_node_of_the_same_object_are_an_error_that_names_both(site: Deciding) -> None:
    lay(site, "a.conf", "b.conf")
    site.write(LEAVING)
    site.run("apply")
    site.write(LEAVING + "  - file: {place}/conf/a.conf\n    mode: '0600'\n    provides: other\n")
    for verb in ("plan", "apply"):
        failed = site.run(verb, *(["--prune"] if verb == "apply" else []), code=1)["file:{host_item}"]
        assert failed["outcome"] == "failed" and "and other (site.yml:6:5) manage the same object" in failed["reason"]
    assert site.host.read(f"{site.place}/conf/b.conf") == "ours" and "file:conf/b.conf" in site.managed()
    site.write(LEAVING + '  - file: "{{{{ host_item }}}}"\n    provides: more\n    mode: "0600"\n'
               '    for_each_host: {{glob: "{place}/*/b.conf"}}\n')  # fmt: skip
    failed = site.run("plan", code=1)["more"]
    assert f"file:{site.place}/conf/b.conf (site.yml:3:5)" in failed["reason"]


def test_node_that_becomes_an_item_keeps_its_record(site: Deciding) -> None:
    lay(site, "a.conf")
    site.write("hosts: all\nresources:\n  - file: {place}/conf/a.conf\n    content: ours\n    provides: one\n")
    site.run("apply")
    site.write(LEAVING)
    assert outcomes(site.run("apply", "--prune"))["file:conf/a.conf"] == "unchanged"
    assert site.managed() == {"file:conf/a.conf"}
    site.write("hosts: all\nresources:\n  - file: {place}/conf/a.conf\n    content: ours\n    provides: one\n")
    site.run("apply", "--prune")
    assert site.managed() == {"one"}
    site.run("destroy")
    assert site.host.read(f"{site.place}/conf/a.conf") == "a.conf"


def test_what_items_removed_stays_removed(site: Deciding) -> None:
    lay(site, "a.conf", "b.conf")
    site.write(LEAVING.replace("content: ours", "absent: true"))
    site.run("apply")
    assert not site.exists("conf/a.conf")
    site.run("apply", "--prune")
    assert not site.exists("conf/a.conf") and "file:conf/a.conf" in site.managed()
    site.run("destroy")
    assert site.host.read(f"{site.place}/conf/a.conf") == "a.conf" and site.managed() == set()


def test_conditions_decide_about_the_list_and_about_each_item(site: Deciding) -> None:
    lay(site, "a.conf", "b.conf", "b.conf.on")
    condition = "    when_host: [{{path: {place}/switch}}, {{path: '{{{{ host_item }}}}.on'}}]\n"
    site.write(LEAVING + condition)
    planned = site.run("plan")
    assert list(planned) == ["file:{host_item}"] and "switch exists" in planned["file:{host_item}"]["excluded"]
    site.host.write(f"{site.place}/switch", "")
    assert outcomes(site.run("apply")) == {
        "file:{host_item}": "excluded", "file:conf/a.conf": "excluded", "file:conf/b.conf": "changed",
    }  # fmt: skip
    site.host.run(["rm", f"{site.place}/switch"])
    site.run("apply", "--prune")
    assert site.managed() == {"file:conf/b.conf"} and site.host.read(f"{site.place}/conf/b.conf") == "ours"


def test_tags_select_items(site: Deciding) -> None:
    lay(site, "a.conf")
    site.write(
        LEAVING.replace("    content: ours", "    content: ours\n    tags: [conf]")
        + "  - file: {place}/x\n    content: x\n"
    )
    assert outcomes(site.run("apply", "--tags", "conf")) == {
        "file:{host_item}": "excluded",
        "file:conf/a.conf": "changed",
    }
    assert outcomes(site.run("apply"))["file:x"] == "changed"


def test_purged_directory_keeps_the_files_of_items(site: Deciding) -> None:
    lay(site, "stray")
    site.write("""\
hosts: all
resources:
  - directory: {place}/conf
    purge: true
  - file: {place}/conf/{{{{ host_item.name }}}}
    content: ours
    for_each_host: {{users: {{max_uid: 0}}}}
""")
    for expected in ("changed", "unchanged"):
        assert outcomes(site.run("plan"))["directory:conf"] == expected
        assert outcomes(site.run("apply"))["directory:conf"] == expected
        assert site.exists("conf/root") and not site.exists("conf/stray")


def test_list_to_which_its_own_items_add_fails(site: Deciding) -> None:
    lay(site, "a.conf")
    site.write("""\
hosts: all
resources:
  - file: "{{{{ host_item }}}}.copy"
    provides: copies
    content: made
    for_each_host: {{glob: "{place}/conf/*"}}
""")
    failed = site.run("apply", code=1)["copies"]
    assert failed["outcome"] == "failed" and f"now contains {site.place}/conf/a.conf.copy as well" in failed["reason"]


def test_apply_that_asks_plans_the_same_items_again(site: Deciding) -> None:
    lay(site, "a.conf", "b.conf")
    site.write(LEAVING)
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(site.state)}
    run: Any = SimpleNamespace(base=site.base, environ=environ)
    terminal = Terminal(run, "apply", "site.yml", "--ssh-config", str(site.base / "ssh_config"), columns=200)
    try:
        terminal.until("[y/N]", 60)
        terminal.type("y\n")
        assert terminal.end() == 0, terminal.shown
    finally:
        terminal.close()
    assert "2 to change" in terminal.shown and site.host.read(f"{site.place}/conf/b.conf") == "ours"
    assert site.managed() == {"file:conf/a.conf", "file:conf/b.conf"}


def test_restart_is_owed_only_if_an_item_changes(site: Deciding) -> None:
    """The items are never known before the run, so the ledger can't know in advance whether they will change."""
    text = UNKNOWN.replace("{{{{ made }}}}", "one").replace("creates: {place}/conf/one.conf", "always: true")
    site.write(text)
    assert outcomes(site.run("apply"))["command:count"] == "changed"
    for _ in range(2):
        applied = outcomes(site.run("apply"))
        assert applied["marks[conf/one.conf]"] == applied["command:count"] == "unchanged"
    site.host.write(f"{site.place}/conf/two.conf", "")
    site.host.run(["mkdir", f"{site.place}/log.d"])
    site.write(text.replace("echo done >> {place}/log", "rmdir {place}/log.d && exit 3"))
    assert outcomes(site.run("apply", code=1))["command:count"] == "failed"
    site.write(text)
    assert outcomes(site.run("apply"))["command:count"] == "changed"  # the failed run owes it
    assert outcomes(site.run("apply"))["command:count"] == "unchanged"
    assert site.host.read(f"{site.place}/log") == "done\ndone\n"


def test_path_that_others_control_and_mounts(site: Deciding) -> None:
    lay(site, "a.conf")
    site.host.run(["ln", "-s", "conf", f"{site.place}/link"])
    site.host.run(["chown", "-h", "nobody", f"{site.place}/link"])
    site.write(LEAVING.replace("/conf/*", "/link/*"))
    failed = site.run("plan", code=1)["file:{host_item}"]
    assert failed["outcome"] == "failed" and "its items can't be listed: " in failed["reason"]
    site.write("""\
hosts: all
resources:
  - command: show
    argv: [echo, --, "{{{{ host_item.path }}}}"]
    effects: {{}}
    always: true
    for_each_host: {{mounts: {{type: proc}}}}
""")
    shown = site.run("apply")
    assert shown["command:show[/proc]"]["actions"][0]["args"]["argv"] == ["echo", "--", "/proc"]


def test_items_of_two_playbooks_are_removed_only_by_the_last(site: Deciding) -> None:
    text = """\
hosts: all
resources:
  - file: {place}/{{{{ host_item }}}}
    content: ours
    for_each_host: {{command: [cat, {place}/NAME], read_only: true, reads: [{place}/NAME]}}
"""
    site.host.run(["mkdir", "-p", site.place])
    site.host.write(f"{site.place}/one", "theirs")
    for name in ("first", "second"):
        site.host.write(f"{site.place}/{name}", "one\nmore\n")
        site.write(text.replace("NAME", name), f"{name}.yml")
        site.run("apply")
    site.file = "first.yml"
    site.host.write(f"{site.place}/first", "more\n")
    gone = site.run("apply", "--prune")["file:one"]
    assert gone["reason"] == f"it stays: file:{site.place}/one of {site.name}/second.yml manages the same object"
    assert site.host.read(f"{site.place}/one") == "ours"
    site.file = "second.yml"
    site.host.write(f"{site.place}/second", "more\n")
    site.run("apply", "--prune")
    assert site.host.read(f"{site.place}/one") == "theirs" and site.host.read(f"{site.place}/more") == "ours"


def test_secret_beside_an_item_is_masked_and_restored(site: Deciding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", "hunter2222")
    lay(site, "a.conf")
    site.write(LEAVING.replace("hosts: all", "hosts: all\nvars:\n  pw: !secret {{env: PW}}").replace(
        "content: ours", "content: '{{{{ host_item }}}} {{{{ pw }}}}'\n    mode: '0600'"
    ))  # fmt: skip
    for verb in ("plan", "apply", "verify"):
        assert "hunter2222" not in str(site.run(verb))
    assert site.host.read(f"{site.place}/conf/a.conf") == f"{site.place}/conf/a.conf hunter2222"
    ledger = site.host.path("/var/lib/statecfg/ledger.db").read_bytes()
    assert b"hunter2222" not in ledger and b"a.conf" in ledger
    site.run("destroy")
    assert site.host.read(f"{site.place}/conf/a.conf") == "a.conf"


def test_items_that_conditions_exclude_do_not_collide(site: Deciding) -> None:
    lay(site, "a.conf", "b.conf", "b.conf.on")
    condition = "    when_host: [{{path: '{{{{ host_item }}}}.on'}}]\n"
    other = "  - file: {place}/conf/a.conf\n    content: other\n    provides: other\n"
    site.write(LEAVING + condition + other)
    applied = outcomes(site.run("apply"))
    assert applied["other"] == "changed" and applied["file:conf/b.conf"] == "changed", applied
    assert site.host.read(f"{site.place}/conf/a.conf") == "other"
    # The other way round: the condition of the single node is false.
    lay(site, "a.conf.on")
    site.write(LEAVING + condition + other + "    when_host: [{{path: /srv/nowhere}}]\n")
    assert outcomes(site.run("plan"))["file:conf/a.conf"] == "changed"


def test_verify_calls_a_new_item_a_change_of_the_host(site: Deciding) -> None:
    lay(site, "a.conf")
    site.write(LEAVING)
    site.run("apply")
    lay(site, "b.conf")
    drift = site.run("verify", code=2)
    assert drift["file:conf/b.conf"]["drift"] == ["host"], drift
