"""Registrations: their contents. statecfg reports all mistakes at once, each with its position."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent

import pytest

from statecfg.hooks.registration import files
from statecfg.hooks.registration.model import HttpHook, Reference, Registration, Selector
from statecfg.playbook import trust
from statecfg.playbook.project import Project
from statecfg.problems import InvalidInput
from tests.each import each

SCOBY = """
apiVersion: scoby.triggermesh.io/v1alpha1
kind: CRDRegistration
metadata: {name: teapot, labels: {team: kitchen}}
spec:
  crd: teapots.example.com
  hook:
    version: v1
    address:
      uri: "http://:8080/v1"
      ref: {apiVersion: v1, kind: Service, name: teapot-hook, namespace: kitchen}
    timeout: PT5S
    capabilities: [pre-reconcile, finalize]
  workload:
    formFactor:
      deployment: {replicas: 1, service: {port: 80, targetPort: 8080}}
    fromImage: {repo: "registry.example/teapot:1"}
    parameterConfiguration: {global: {defaultPrefix: TEA_}}
    statusConfiguration:
      conditionsFromHook: [{type: Boiled}]
      add: [{path: water, valueFrom: {path: spec.water}}]
"""

PROGRAM = """
metadata: {name: counter}
spec:
  exec: {type: counter, configuration: {value: 0, name: null}}
  events: [node-booted, node-registered]
  select: {hosts: "web*", tags: edge}
  order: 7
  deadline: PT1M
  onFailure: continue
  fullControl: [ann, bob]
"""


def project(root: Path, **files: str) -> Project:
    """Create a project with registrations."""
    folder = root / "hooks"
    folder.mkdir(mode=0o755, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.yml").write_text(dedent(text))
        (folder / f"{name}.yml").chmod(0o644)
    return Project(root)


def only(root: Path, text: str) -> Registration:
    (found,) = files.load(project(root, one=text))
    return found


def refused(root: Path, text: str) -> list[tuple[str, int]]:
    """Return the code and the line of each problem of a registration."""
    with pytest.raises(InvalidInput) as failed:
        files.load(project(root, one=text))
    return [(item.code, item.locations[0].line) for item in failed.value.problems]


def test_project_without_hooks_has_no_registrations(tmp_path: Path) -> None:
    assert files.load(Project(tmp_path)) == []


def test_registration_written_for_scoby_loads_unchanged(tmp_path: Path) -> None:
    found = only(tmp_path, SCOBY)
    assert (found.name, found.protocol, found.events) == ("teapot", "http", ("pre-reconcile", "finalize"))
    assert (found.on_failure, found.deadline, found.order, found.where) == ("retry", 120, 100, "controller")
    assert found.select == Selector() and found.warnings == ()
    assert found.http == HttpHook(
        "http://:8080/v1",
        Reference("Service", "teapot-hook", "kitchen", "v1"),
        5,
        ("pre-reconcile", "finalize"),
        form_factor="deployment",
        conditions=("Boiled",),
    )
    assert (found.position.file, found.position.line) == ("hooks/one.yml", 4)


def test_registration_of_a_program_sets_all_fields(tmp_path: Path) -> None:
    found = only(tmp_path, PROGRAM)
    assert (found.name, found.protocol, found.exec.type) == ("counter", "exec", "counter")
    assert found.exec.configuration == {"value": 0, "name": None}
    assert found.events == ("node-booted", "node-registered")
    assert found.select == Selector("web*", (), (), ("edge",))
    assert (found.order, found.deadline, found.on_failure, found.full_control) == (7, 60, "continue", ("ann", "bob"))
    assert found.select.wire() == {"types": [], "names": [], "tags": ["edge"]}


def test_registration_of_a_program_has_defaults(tmp_path: Path) -> None:
    found = only(tmp_path, "metadata: {name: x}\nspec: {exec: {type: t}, events: [post-create], where: host}")
    assert (found.deadline, found.on_failure, found.order, found.where) == (30, "abort", 100, "host")
    assert (found.exec.configuration, found.full_control) == ({}, ())


def test_load_sorts_hooks_by_order_and_name(tmp_path: Path) -> None:
    made = {
        name: PROGRAM.replace("counter", name).replace("order: 7", f"order: {order}")
        for name, order in (("c", 2), ("a", 2), ("b", -1))
    }
    assert [each.name for each in files.load(project(tmp_path, **made))] == ["b", "a", "c"]


@pytest.mark.parametrize("version", ["v1", '"v1"', "1"])
def test_hook_accepts_every_spelling_of_version_1(tmp_path: Path, version: str) -> None:
    assert only(tmp_path, SCOBY.replace("version: v1", f"version: {version}")).http is not None


@each("version", ["v2", "2", "true", '"1"', "[v1]"])
def test_hook_refuses_other_versions(tmp_path: Path, version: str) -> None:
    assert refused(tmp_path, SCOBY.replace("version: v1", f"version: {version}")) == [("SC0603", 8)]


@each(
    ("factor", "name"),
    [("{knativeService: {}}", "ksvc"), ("{teapot: {}}", "teapot"), ("{}", "playbook"), ("", "playbook")],
)
def test_form_factor_gets_its_name_on_the_wire(tmp_path: Path, factor: str, name: str) -> None:
    text = SCOBY.replace(
        "formFactor:\n      deployment: {replicas: 1, service: {port: 80, targetPort: 8080}}", f"formFactor: {factor}"
    )
    http = only(tmp_path, text).http
    assert http is not None and http.form_factor == name


def test_workload_keeps_the_keys_of_its_children(tmp_path: Path) -> None:
    http = only(tmp_path, SCOBY.replace("  workload:", '  workload:\n    children: {deployment: "deployment:*"}')).http
    assert http is not None and http.children == {"deployment": "deployment:*"}


def test_mistakes_that_scoby_ignores_become_warnings(tmp_path: Path) -> None:
    text = SCOBY.replace("[pre-reconcile, finalize]", "[pre-reconcile, finalise]").replace("PT5S", "5s")
    found = only(tmp_path, text)
    assert found.events == ("pre-reconcile",) and found.http is not None and found.http.timeout == 15
    assert [(item.code, item.locations[0].line) for item in found.warnings] == [("SC0605", 12), ("SC0608", 13)]
    assert found.warnings[1].help.startswith("did you mean `finalize`?")


def test_hook_without_capabilities_gets_a_warning(tmp_path: Path) -> None:
    found = only(tmp_path, SCOBY.replace("    capabilities: [pre-reconcile, finalize]\n", ""))
    assert found.events == () and [item.code for item in found.warnings] == ["SC0608"]


@each(
    ("text", "wrong"),
    [
        ("[1]", [("SC0310", 1)]),
        ("{}", [("SC0602", 1), ("SC0602", 1)]),
        ("metadata: {}\nspec: {}", [("SC0602", 1), ("SC0602", 2)]),
        ("metadata: {name: a}\nspec: {exec: {type: t}, hook: {}, events: []}", [("SC0602", 2)]),
        ("metadata: {name: a}\nspec: {exec: {type: t}}", [("SC0602", 2)]),
        ("metadata: {name: a/b}\nspec: {exec: {type: t}, events: [node-booted]}", [("SC0603", 1)]),
        ("metadata: {name: a}\nkind: Hok\nspec: {exec: {type: t}, events: [node-booted]}", [("SC0603", 2)]),
        ("metadata: {name: a}\nspec: {exec: {type: t}, events: [node-boot]}", [("SC0604", 2)]),
        ("metadata: {name: a}\nspec: {exec: {type: t}, events: [post-create], wher: host}", [("SC0311", 2)]),
        ("metadata: {name: a}\nspec: {exec: {type: t}, events: [node-booted], where: host}", [("SC0603", 2)]),
        ("metadata: {name: a}\nspec: {exec: {type: t}, events: [node-booted], order: 1.5}", [("SC0603", 2)]),
        ("metadata: {name: a}\nspec: {exec: {type: t}, events: [node-booted], deadline: 30s}", [("SC0605", 2)]),
        ("metadata: {name: a}\nspec: {exec: {type: t}, events: [node-booted], onFailure: ignore}", [("SC0603", 2)]),
        ("metadata: {name: a}\nspec: {exec: {type: t}, events: [node-booted], select: {host: a}}", [("SC0311", 2)]),
        ("metadata: {name: a}\nspec: {exec: {type: t}, events: [node-booted], workload: {}}", [("SC0311", 2)]),
        (
            "metadata: {name: a}\nspec: {exec: {type: t, configuration: {a: !secret {env: X}}}, events: [node-booted]}",
            [("SC0312", 2)],
        ),
        (SCOBY.replace("timeout: PT5S", "events: [finalize]"), [("SC0311", 12)]),
        (SCOBY.replace("  crd:", "  where: host\n  crd:"), [("SC0603", 6)]),
        (SCOBY.replace("  crd:", "  events: [finalize]\n  crd:"), [("SC0311", 6)]),
        (SCOBY.replace("http://:8080/v1", "http://a.example"), [("SC0606", 10)]),
        (SCOBY.replace("http://:8080/v1", "ftp://:8080/v1"), [("SC0606", 10)]),
        (SCOBY.replace("http://:8080/v1", "http://ann:pass@:8080/v1"), [("SC0606", 10)]),
        (SCOBY.replace("http://:8080/v1", "http://:80800/v1"), [("SC0606", 10)]),
        (SCOBY.replace(", namespace: kitchen", ""), [("SC0606", 11)]),
        (SCOBY.replace("name: teapot-hook, ", "nme: teapot-hook, "), [("SC0602", 11), ("SC0311", 11)]),
        (SCOBY.replace("      deployment:", "      knativeService: {}\n      deployment:"), [("SC0603", 16)]),
    ],
)
def test_load_reports_every_mistake_with_its_line(tmp_path: Path, text: str, wrong: list[tuple[str, int]]) -> None:
    assert sorted(refused(tmp_path, text)) == sorted(wrong)


def test_hook_without_a_full_address_is_refused(tmp_path: Path) -> None:
    start = "metadata: {name: a}\nspec: {hook: {version: v1, capabilities: [finalize], address: "
    for address, code in (("{}", "SC0606"), ("{uri: /v1}", "SC0606"), ("{uri: 'http:///v1'}", "SC0606")):
        assert refused(tmp_path, start + address + "}}") == [(code, 2)]


def test_load_reports_mistakes_of_all_files_together(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        a="metadata: {name: a}\nspec: {exec: {type: t}, events: [node-boot]}",
        b="metadata: {name: b}\nspec: {exec: {tpe: t}, events: [node-booted], order: x}",
        c=PROGRAM,
        d=PROGRAM.replace("counter}", "COUNTER}"),
        e="a: b: c",
    )
    with pytest.raises(InvalidInput) as failed:
        files.load(made)
    assert [(item.code, item.locations[0].file) for item in failed.value.problems] == [
        ("SC0604", "hooks/a.yml"),
        ("SC0602", "hooks/b.yml"),
        ("SC0311", "hooks/b.yml"),
        ("SC0603", "hooks/b.yml"),
        ("SC0607", "hooks/d.yml"),
        ("SC0315", "hooks/e.yml"),
    ]
    assert failed.value.problems[0].help.startswith("did you mean `node-booted`?")


@pytest.mark.parametrize("mode", [0o666, 0o646, 0o777])
def test_load_refuses_a_file_writable_by_others(tmp_path: Path, mode: int) -> None:
    made = project(tmp_path, one=PROGRAM)
    path = tmp_path / "hooks/one.yml"
    path.chmod(mode)
    with pytest.raises(InvalidInput) as failed:
        files.load(made)
    (wrong,) = failed.value.problems
    assert wrong.code == "SC0601" and f"{path} of user {os.geteuid()} has mode {mode:04o}" in wrong.detail


def test_the_owners_private_group_may_write_registrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = project(tmp_path, one=PROGRAM)
    for path, mode in ((tmp_path / "hooks", 0o775), (tmp_path / "hooks/one.yml", 0o664)):
        path.chmod(mode)
    monkeypatch.setattr(trust, "private", lambda user, group: user == os.geteuid())
    (found,) = files.load(made)
    assert found.name == "counter"
    monkeypatch.setattr(trust, "private", lambda user, group: False)
    with pytest.raises(InvalidInput) as failed:
        files.load(made)
    (wrong,) = failed.value.problems
    assert wrong.code == "SC0601" and "and 1 more" in wrong.detail


def test_load_refuses_a_directory_writable_by_others(tmp_path: Path) -> None:
    made = project(tmp_path, one=PROGRAM)
    (tmp_path / "hooks").chmod(0o777)
    with pytest.raises(InvalidInput, match=r"hooks of user \d+ has mode 0777"):
        files.load(made)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_load_refuses_a_file_of_another_user(tmp_path: Path) -> None:
    made = project(tmp_path, one=PROGRAM)
    os.chown(tmp_path / "hooks/one.yml", 12345, -1)
    with pytest.raises(InvalidInput, match="belongs to user 12345"):
        files.load(made)
