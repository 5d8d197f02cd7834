"""Nodes that a real host repeats for the items of a list: plan, saved plan, apply, prune, undo and triggers."""

from __future__ import annotations

from pathlib import Path

import pytest

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
