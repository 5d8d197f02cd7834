"""Nodes that a host repeats for the items of a list: planned on imagined hosts."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.problems import InvalidInput
from statecfg.remote.graph.model import Blob, CheckError
from statecfg.remote.run.item_lists import Insertion, items
from statecfg.testing import Definitions, ImaginedHost
from tests.each import each
from tests.unit.remote.run.playbooks import definitions, planned

__all__ = ["definitions"]

FILES = {"/etc/app/b.conf": "b", "/etc/app/a.conf": "a", "/etc/app/.hidden.conf": "", "/etc/app/c.txt": "c"}
USERS: dict[str, Any] = {"ann": {"uid": 1500}, "bob": {"uid": 1501, "groups": ["staff"]}, "daemon": {"uid": 1}}


def refused(definitions: Definitions, entries: str) -> str:
    with pytest.raises(InvalidInput) as raised:
        planned(definitions, entries)
    return "; ".join(f"{problem.code} {problem.detail}" for problem in raised.value.problems)


MODES = """\
  - file: "{{ host_item }}"
    mode: "0600"
    for_each_host: {glob: /etc/app/*.conf}
"""


def test_paths_become_nodes_in_a_fixed_order(definitions: Definitions) -> None:
    plan = planned(definitions, MODES, files=FILES)
    assert plan.layers == [["file:{host_item}", "file:/etc/app/a.conf", "file:/etc/app/b.conf"]]
    assert plan["file:{host_item}"].excluded == "its items: 2: file:/etc/app/a.conf, file:/etc/app/b.conf"
    assert plan.changed == ["file:/etc/app/a.conf", "file:/etc/app/b.conf"]
    assert plan.mode("/etc/app/a.conf") == "0600" and plan.mode("/etc/app/c.txt") == "0644"


def test_users_have_fields_and_limits(definitions: Definitions) -> None:
    entry = """\
  - file: "{{ host_item.home }}/.plan"
    content: "{{ host_item.uid }} {{ host_item.gid }} {{ host_item.shell }}"
    owner: "{{ host_item.name }}"
    for_each_host: {users: {LIMITS}}
    when_host: {path: "{{ host_item.home }}", is: directory}
"""
    homes = {"/home/ann": None, "/home/bob": None}
    plan = planned(definitions, entry.replace("LIMITS", "min_uid: 1000"), users=USERS, files=homes)
    assert plan.changed == ["file:/home/ann/.plan", "file:/home/bob/.plan"]
    assert plan.read("/home/ann/.plan") == "1500 1500 /bin/sh"
    plan = planned(definitions, entry.replace("LIMITS", "group: staff"), users=USERS, files=homes, groups={"staff": {}})
    assert plan.changed == ["file:/home/bob/.plan"]
    plan = planned(definitions, entry.replace("LIMITS", "max_uid: 1"), users=USERS)
    assert plan["file:/home/daemon/.plan"].excluded == "its condition is false: /home/daemon is a directory"
    plan = planned(definitions, entry.replace("LIMITS", "group: nobody"), users=USERS)
    assert "its list needs the group nobody" in plan.failed["file:{host_item.home}/.plan"]


def test_list_sees_what_required_nodes_will_do(definitions: Definitions) -> None:
    before = """\
  - file: /etc/app/new.conf
    content: x
  - file: /etc/app/a.conf
    absent: true
"""
    links = "  - symlink: '{{ host_item }}.link'\n    target: '{{ host_item }}'\n"
    links += "    for_each_host: {glob: /etc/app/*.conf, is: file}\n"
    more = "    requires: ['file:/etc/app/new.conf', 'file:/etc/app/a.conf']\n"
    plan = planned(definitions, before + links + more, files=FILES)
    assert plan.layers[1] == [
        "symlink:{host_item}.link",
        *(f"symlink:/etc/app/{name}.conf.link" for name in ("b", "new")),
    ]
    plan = planned(definitions, before + MODES + more, files=FILES)
    assert "file:/etc/app/new.conf" in plan.failed["file:{host_item}"] and "file:/etc/app/b.conf" not in plan


def test_items_of_planned_users(definitions: Definitions) -> None:
    entries = """\
  - user: carl
    UID
  - file: "/srv/of-{{ host_item }}"
    content: x
    for_each_host: {users: {min_uid: 1000}}
    requires: ["user:carl"]
"""
    known = "uid: 1600\n    group: users\n    home: /srv/carl\n    shell: /bin/sh"
    groups = {"users": {"gid": 100}}
    plan = planned(definitions, entries.replace("UID", known), users=USERS, groups=groups)
    assert plan.changed == ["user:carl", "file:/srv/of-ann", "file:/srv/of-bob", "file:/srv/of-carl"]
    plan = planned(definitions, entries.replace("UID", "comment: someone"), users=USERS)
    assert plan["file:/srv/of-{host_item.name}"].known_after == "user:carl"


def test_items_that_a_command_decides_are_known_after_it(definitions: Definitions) -> None:
    entries = (
        "  - command: build\n    shell: make\n    always: true\n"
        + MODES
        + "    requires: ['command:build']\n"
        + "  - file: /srv/after\n    content: x\n    requires: ['file:{host_item}']\n"
    )
    plan = planned(definitions, entries, files=FILES)
    assert plan["file:{host_item}"].known_after == "command:build" and plan.layers[1] == ["file:{host_item}"]


def test_requirements_and_triggers_mean_all_items(definitions: Definitions) -> None:
    entries = MODES + "  - command: reload\n    shell: x\n    effects: {}\n    restart_on: ['file:{host_item}']\n"
    plan = planned(definitions, entries, files=FILES)
    assert plan["command:reload"].triggered_by == ["file:/etc/app/a.conf", "file:/etc/app/b.conf"]
    assert plan["command:reload"].requires == ["file:{host_item}", "file:/etc/app/a.conf", "file:/etc/app/b.conf"]
    plan = planned(definitions, entries, files={})
    assert plan["command:reload"].outcome == "unchanged" and plan["file:{host_item}"].excluded == "its items: 0"


LINES = "    for_each_host: {command: [list], read_only: true, reads: []}\n"


@each(
    ("entry", "text", "reason"),
    [
        ("file: '/srv/{{ host_item }}'", "..", "is part of a path, so it must be one name"),
        ("file: '/srv/{{ host_item }}'", "a/b", "is part of a path, so it must be one name"),
        ("file: '/srv/{{ host_item }}'", "../etc/shadow", "is part of a path"),
        ("file: '/srv/{{ host_item }}'", "x" * 300, "is longer than"),
        ("file: '/srv/{{ host_item }}'", "a\x1bb", "can't be printed"),
        ("file: '/srv/{{ host_item }}'", "a\x00b", "can't be printed"),
        ("user: '{{ host_item }}'", "-o", "contains '-'"),
        ("user: '{{ host_item }}'", "a:b", "contains ':'"),
        ("user: '{{ host_item }}'", "a b", "contains ' '"),
        ("user: '{{ host_item }}'", "x" * 40, "is longer than"),
        ("package: '{{ host_item }}'", "--allow-downgrades", "contains '-'"),
        ("package: '{{ host_item }}'", "a;b", "contains ';'"),
        ("command: x\n    argv: [rm, '{{ host_item }}']", "-rf", "begins with `-`"),
        ("command: x\n    argv: [rm, --, '{{ host_item }}']", "-rf", "begins with `-`"),
    ],
)
def test_item_that_the_node_cannot_take_fails_it(definitions: Definitions, entry: str, text: str, reason: str) -> None:
    more = {"command": "    effects: {}\n    always: true\n", "file": "    content: x\n"}
    head = f"  - {entry}\n" + more.get(entry.partition(":")[0], "")
    plan = planned(definitions, head + LINES, commands={"list": (0, f"fine\n{text}\n")})
    (failed,) = plan.failed.values()
    assert reason in failed and len(plan) == 1
    plan = planned(definitions, head + LINES, commands={"list": (0, "fine\n")})
    assert not plan.failed and len(plan) == 2


@each(
    ("answer", "reason"),
    [
        ((1, "one\n"), "its command list ended with the exit status 1"),
        ((0, "".join(f"{number}\n" for number in range(1001))), "more than 1000 items"),
        ((0, "x" * 300_000), "prints more than 262144 bytes"),
        ((0, "\ufeffone\n"), "can't be printed"),
    ],
)
def test_list_that_cannot_be_made_fails_the_node(definitions: Definitions, answer: Any, reason: str) -> None:
    plan = planned(definitions, "  - file: /srv/{{ host_item }}\n    content: x\n" + LINES, commands={"list": answer})
    assert reason in plan.failed["file:/srv/{host_item}"] and len(plan) == 1


def test_items_with_equal_objects_fail_the_node(definitions: Definitions) -> None:
    entry = "  - file: /srv/one\n    content: '{{ host_item }}'\n"
    plan = planned(definitions, entry + LINES, commands={"list": (0, "a\nb\n")})
    assert "file:/srv/one[a]" in plan.failed["file:/srv/one"] and "file:/srv/one[b]" in plan.failed["file:/srv/one"]
    assert len(planned(definitions, entry + LINES, commands={"list": (0, "a\na\n \n")})) == 2


GLOB = "    for_each_host: {glob: /etc/app/*.conf}\n"


@each(
    "entry",
    [
        "command: x\n    shell: rm {{ host_item }}",
        "command: x\n    argv: [sh, -c, 'rm {{ host_item }}']",
        "command: x\n    argv: [sh, -c, '{{ host_item }}']",
        "command: x\n    argv: [/bin/bash, -euc, '{{ host_item }}', x]",
        "command: x\n    argv: [env, A=1, dash, '{{ host_item }}']",
        "command: x\n    argv: [python3.11, -c, 'x', -m, '{{ host_item }}']",
        "command: x\n    argv: [ssh, other, '{{ host_item }}']",
        "command: x\n    argv: [su, -c, x, '{{ host_item }}']",
        "command: x\n    argv: [env, '{{ host_item }}']",
        "command: x\n    argv: [/usr/bin/env, A=1, '{{ host_item }}']",
        "command: x\n    argv: [env, -S, '{{ host_item }}']",
        "command: x\n    argv: [flock, /run/lock/x, -c, '{{ host_item }}']",
        "command: x\n    argv: [flock, /run/lock/x, '{{ host_item }}']",
        "command: x\n    argv: [timeout, '5', sh, -c, '{{ host_item }}']",
        "command: x\n    argv: [timeout, -k, '1', '5', '{{ host_item }}']",
        "command: x\n    argv: [sudo, -u, app, '{{ host_item }}']",
        "command: x\n    argv: [nice, -n, '5', env, A=1, '{{ host_item }}']",
        "command: x\n    argv: [timeout, '5', flock, /run/lock/x, -c, '{{ host_item }}']",
        "command: x\n    argv: [find, /srv, -exec, '{{ host_item }}', ;]",
        "command: x\n    argv: [find, /srv, -exec, sh, -c, '{{ host_item }}', ;]",
        "command: x\n    argv: [xargs, '{{ host_item }}']",
        "command: x\n    argv: ['{{ host_item }}']",
        "command: x\n    argv: [rm, 'a{{ host_item }}']",
        "command: x\n    argv: [sh]\n    stdin: 'rm {{ host_item }}'",
        "command: x\n    argv: [ls]\n    unless: test -e {{ host_item }}",
        "command: x\n    argv: [ls]\n    onlyif: [sh, -c, 'test -e {{ host_item }}']",
        "command: x\n    argv: [ls]\n    undo: rm {{ host_item }}",
        "cron: x\n    schedule: 0 0 * * *\n    command: rm {{ host_item }}",
        "file: /srv/x\n    content: x\n    when_host: {command: 'test -e {{ host_item }}', read_only: true, reads: []}",
        "file: /srv/x\n    content: x\n    when_host: {path: /a, contains: '{{ host_item }}'}",
        "wait_for: x\n    command: test -e {{ host_item }}",
    ],
)
def test_items_in_code_are_refused(definitions: Definitions, entry: str) -> None:
    assert "SC0123" in refused(definitions, f"  - {entry}\n{GLOB}")


@each(
    "entry",
    [
        "command: x\n    argv: [ls, --, '{{ host_item }}']",
        "command: x\n    argv: [env, A=1, ls, '{{ host_item }}']",
        "command: x\n    argv: [timeout, '5', cat, '{{ host_item }}']",
        "command: x\n    argv: [timeout, -k, '1', '5', ls, '{{ host_item }}']",
        "command: x\n    argv: [flock, /run/lock/x, sh, -c, 'ls \"$1\"', sh, '{{ host_item }}']",
        "command: x\n    argv: [sudo, -n, --, ls, '{{ host_item }}']",
        "command: x\n    argv: [find, '{{ host_item }}', -name, x]",
        "command: x\n    argv: [podman, exec, '{{ host_item }}', env]",
        "command: x\n    argv: [timeout, '5', podman, exec, '{{ host_item }}']",
        "command: x\n    argv: [sh, -c, 'ls -- \"$1\"', sh, '{{ host_item }}']",
        "command: x\n    shell: ls \"$ITEM\"\n    env: {ITEM: '{{ host_item }}'}",
        "command: x\n    argv: [ls]\n    creates: '{{ host_item }}.done'",
        "symlink: '{{ host_item }}.link'\n    target: '{{ host_item }}'",
        "file: '/backup{{ host_item }}'\n    content: x",
    ],
)
def test_items_as_data_are_inserted(definitions: Definitions, entry: str) -> None:
    plan = planned(definitions, f"  - {entry}\n{GLOB}", files={**FILES, "/backup/etc/app": None})
    assert not plan.failed and len(plan) == 3 and len(plan.changed) == 2, plan


@each(
    ("entry", "text"),
    [
        ("file: '/srv/{{ host_item | basename }}'\n    content: x\n" + GLOB, "SC0426"),
        ("file: '{{ host_item }}'\n    content: \"{% if host_item %}x{% endif %}\"\n" + GLOB, "SC0426"),
        ("file: '{{ host_item }}'\n    content: \"{% for x in host_item %}x{% endfor %}\"\n" + GLOB, "SC0"),
        ("file: '/srv/{{ host_item }}'\n    content: x\n", "the variable `host_item` is not defined"),
        ("file: '/srv{{ host_item.name }}'\n    content: x\n" + GLOB, "no such field"),
        ("file: '/srv{{ host_item.nosuch }}'\n    content: x\n" + GLOB, "SC0426"),
        ("file: '{{ host_item }}'\n    mode: '{{ host_item }}'\n" + GLOB, "'{host_item}' is not a mode"),
        ("file: '{{ host_item }}'\n    content: x\n    tags: ['{{ host_item }}']\n" + GLOB, "write it" and "SC0123"),
        ("file: '{{ host_item }}'\n    content: x\n    requires: ['{{ host_item }}']\n" + GLOB, "SC0123"),
        ("file: '{{ host_item }}'\n    source: '{{ host_item }}'\n" + GLOB, "SC0"),
        ("file: /srv/x\n    content: x\n    for_each_host: {glob: /etc/x}\n", "without a pattern"),
        ("file: /srv/x\n    content: x\n    for_each_host: {glob: etc/*}\n", "`glob` with the value"),
        ("file: /srv/x\n    content: x\n    for_each_host: {glob: /etc/**}\n", "`**`"),
        ("file: /srv/x\n    content: x\n    for_each_host: {glob: /etc/../*}\n", "`..`"),
        ("file: /srv/x\n    content: x\n    for_each_host: {glob: /a/*, users: {}}\n", "in one list"),
        ("file: /srv/x\n    content: x\n    for_each_host: {globs: /a/*}\n", "a list without a kind"),
        ("file: /srv/x\n    content: x\n    for_each_host: {users: {uid: 1}}\n", "`users` with the key `uid`"),
        ("file: /srv/x\n    content: x\n    for_each_host: {users: {min_uid: '1'}}\n", "`min_uid` with the value"),
        ("file: /srv/x\n    content: x\n    for_each_host: {command: [ls]}\n", "not declared read-only"),
        ("file: /srv/x\n    content: x\n    for_each_host: /etc/*\n", "string: '/etc/*'"),
    ],
)
def test_wrong_lists_and_uses_are_refused(definitions: Definitions, entry: str, text: str) -> None:
    assert text in refused(definitions, f"  - {entry}")


def test_value_of_a_repeated_node_is_refused(definitions: Definitions) -> None:
    entries = MODES + "  - file: /srv/x\n    content: \"{{ output('file:{host_item}', 'sha256') }}\"\n"
    assert "repeated for each item" in refused(definitions, entries)


def test_template_files_know_the_item(definitions: Definitions) -> None:
    (definitions.root / "templates").mkdir()
    (definitions.root / "templates/x.j2").write_text("for {{ host_item }}\n")
    plan = planned(definitions, "  - file: '{{ host_item }}.x'\n    template: x.j2\n" + GLOB, files=FILES)
    assert plan.read("/etc/app/a.conf.x") == "for /etc/app/a.conf\n"


def test_each_mount_of_the_list_gets_a_node(definitions: Definitions) -> None:
    entries = """\
  - mount: /srv/a
    source: tmpfs
    fstype: tmpfs
  - file: "{{ host_item.path }}/about"
    content: "{{ host_item.device }} {{ host_item.type }}"
    for_each_host: {mounts: {type: tmpfs}}
    requires: ["mount:/srv/a"]
"""
    plan = planned(definitions, entries, files={"/srv/a": None, "/etc/fstab": ""})
    assert "file:/srv/a/about" in plan or plan["file:{host_item.path}/about"].known_after == "mount:/srv/a"
    alone = entries.partition("  - file")[2].replace('    requires: ["mount:/srv/a"]\n', "")
    empty = planned(definitions, "  - file" + alone)
    assert "it is empty" in empty.failed["file:{host_item.path}/about"]


def test_packages_of_items_are_installed_together(definitions: Definitions) -> None:
    entries = "  - package: '{{ host_item }}'\n" + LINES + "  - package: other\n"
    plan = planned(definitions, entries, commands={"list": (0, "nginx\nredis\n")})
    assert sorted(plan.changed) == ["package:nginx", "package:other", "package:redis"]
    assert not any("hi0x7q" in str(node) for node in plan.values())


@each(
    "entry",
    [
        "logrotate: x\n    paths: [/a]\n    scripts: {postrotate: 'kill {{ host_item }}'}",
        "systemd_unit: x.service\n    sections: {Service: {ExecStart: '/bin/sh -c {{ host_item }}'}}",
        "systemd_unit: x.timer\n    sections: {Timer: {OnCalendar: '{{ host_item }}'}}",
        "replace: /etc/x\n    pattern: '{{ host_item }}'\n    replacement: x",
        "line_in_file: /etc/x\n    line: x\n    match: '{{ host_item }}'",
        'systemd_unit: x.service\n    content: "[Service]\\nExecStart=/bin/ls {{ host_item }}\\n"',
        "sudoers: x\n    users: [ann]\n    commands: [/bin/ls, '{{ host_item }}']",
        "sudoers: x\n    content: 'ann ALL={{ host_item }}'",
        "ssh_config: x\n    settings: {ProxyCommand: 'nc {{ host_item }}'}",
        'file: /usr/local/bin/x\n    content: "#!/bin/sh\\nls {{ host_item }}\\n"',
        "process: /bin/sh\n    user: root\n    group: root\n    env: {}\n    args: [-c, '{{ host_item }}']",
        "container: x\n    image: docker.io/library/x:1\n    entrypoint: sh\n    command: [-c, '{{ host_item }}']",
    ],
)
def test_items_in_code_of_other_types_are_refused(definitions: Definitions, entry: str) -> None:
    assert "SC0123" in refused(definitions, f"  - {entry}\n{GLOB}")


@each(
    ("entry", "text", "wrong"),
    [
        ("logrotate: '{{ host_item }}'\n    paths: ['/log/{{ host_item }}']", "b c", " "),
        ("logrotate: x\n    paths: ['/log/{{ host_item }}']", "b c", " "),
        ("cron: x\n    schedule: 0 0 * * *\n    user: root\n    command: 'true'\n"
         "    environment: {X: '{{ host_item }}'}", "'b", "'"),
    ],
)  # fmt: skip
def test_items_that_their_type_would_quote_are_refused(
    definitions: Definitions, entry: str, text: str, wrong: str
) -> None:
    host = {"/etc/logrotate.d": None, "/etc/cron.d": None}
    plan = planned(definitions, f"  - {entry}\n{LINES}", files=host, commands={"list": (0, f"a\n{text}\n")})
    (failed,) = plan.failed.values()
    assert f"contains {wrong!r} where this node can't take it" in failed
    plan = planned(definitions, f"  - {entry}\n{LINES}", files=host, commands={"list": (0, "a\n")})
    assert not plan.failed


@pytest.mark.parametrize("entry", ["systemd_unit: x.service", "file: /usr/local/bin/x"])
def test_items_in_templates_of_code_are_refused(definitions: Definitions, entry: str) -> None:
    (definitions.root / "templates").mkdir()
    (definitions.root / "templates/x.j2").write_text("#!/bin/sh\nls {{ host_item }}\n")
    assert "SC0123" in refused(definitions, f"  - {entry}\n    template: x.j2\n{GLOB}")


def test_users_of_the_host_get_rules_of_sudo(definitions: Definitions) -> None:
    entry = "  - sudoers: '{{ host_item }}'\n    users: ['{{ host_item }}']\n    commands: [/bin/ls]\n"
    plan = planned(
        definitions,
        entry + "    for_each_host: {users: {min_uid: 1000}}\n",
        users=USERS, files={"/etc/sudoers.d": None, "/usr/sbin/visudo": "x"},
    )  # fmt: skip
    assert not plan.failed and {"sudoers:ann", "sudoers:bob"} <= {*plan.changed}


def test_samples_never_reach_messages(definitions: Definitions) -> None:
    said = refused(
        definitions, "  - file: '{{ host_item }}'\n    mode: '{{ host_item }}'\n    owner: '{{ host_item }}'\n" + GLOB
    )
    assert "hi0x7q" not in said and "jn1y8w" not in said


def test_item_with_a_secret_is_refused(definitions: Definitions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Blob, "secrets", (b"hunter22",))
    plan = planned(
        definitions, "  - file: /srv/{{ host_item }}\n    content: x\n" + LINES, commands={"list": (0, "a hunter22\n")}
    )
    (failed,) = plan.failed.values()
    assert failed == "its list contains an item with a secret, which names and files would show"


SAMPLES = {"S": ("name", "", "", 100), "/P": ("path", "", "", 100)}


@each(
    ("template", "item", "expected"),
    [
        ("S", {"name": "a/b"}, "a/b"),
        ("/x/S", {"name": "a"}, "/x/a"),
        ("/x/S", {"name": "a/b"}, None),
        ("sub/S", {"name": ".."}, None),
        ("S/sub", {"name": ".."}, None),
        ("../S", {"name": "a/b"}, None),
        ("--x=S", {"name": "-y"}, "--x=-y"),
        ("S", {"name": "-y"}, None),
        ("S", {"name": ""}, None),
        ("/P/about", {"path": "/srv"}, "/srv/about"),
        ("/P/about", {"path": "/"}, "/about"),
        ("/P", {"path": "/"}, "/"),
        ("/b/P", {"path": "/srv/a"}, "/b/srv/a"),
        ("/P/x", {"path": "/srv/../etc"}, None),
        ("/P/x", {"path": "relative"}, None),
        ("S and S", {"name": "S"}, "S and S"),
    ],
)
def test_an_item_replaces_its_sample_only_where_it_is_safe(
    template: str, item: dict[str, str], expected: str | None
) -> None:
    insertion = Insertion(SAMPLES, item)
    if expected is None:
        with pytest.raises(CheckError):
            insertion.into(template)
    else:
        assert insertion.into(template) == expected
        assert insertion.into({"a": [template]}) == {"a": [expected]}


def test_patterns_match_one_level_and_no_hidden_names(definitions: Definitions) -> None:
    files = {f"/etc/{path}": "x" for path in ("a/1.conf", "a/.2.conf", "b/3.conf", "b/c/4.conf", ".d/5.conf", "e.conf")}
    machine = ImaginedHost(files=files, links={"/etc/f": "a", "/etc/g.conf": "nowhere", "/etc/h.conf": "a"}).machine()

    def found(pattern: str, **more: str) -> list[str]:
        return [item["match"].removeprefix("/etc/") for item in items({"glob": f"/etc/{pattern}", **more}, machine)]

    assert found("*/*.conf") == ["a/1.conf", "b/3.conf", "f/1.conf", "h.conf/1.conf"]
    assert found("*/.*.conf") == ["a/.2.conf", "f/.2.conf", "h.conf/.2.conf"]
    assert found("[ab]/?.conf") == ["a/1.conf", "b/3.conf"]
    assert found("*.conf") == ["e.conf", "g.conf", "h.conf"]
    assert found("*.conf", **{"is": "file"}) == ["e.conf"] and found("*.conf", **{"is": "directory"}) == ["h.conf"]
    assert found("*.conf", **{"is": "link"}) == ["g.conf", "h.conf"]
    assert found("nosuch/*") == found("e.conf/*") == []


def test_item_and_secret_in_one_attribute(definitions: Definitions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", "hunter2222")
    (definitions.root / "playbooks/one.yml").write_text(
        "hosts: web1\nvars:\n  pw: !secret {env: PW}\nresources:\n"
        "  - file: '/srv/{{ host_item }}'\n    content: '{{ host_item.home }} {{ pw }}'\n    mode: '0600'\n"
        "    for_each_host: {users: {min_uid: 1000}}\n"
    )
    plan = definitions.plan("playbooks/one.yml", on=ImaginedHost(users={"ann": {"uid": 1500}}))
    assert plan["file:/srv/ann"].content == "/home/ann hunter2222"
