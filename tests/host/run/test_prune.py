"""Prune and destroy on a real host: what they remove, what they restore, and what they must not remove."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.host.run.site import Site, names
from tests.lab import Host


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Site:
    return Site(tmp_path, light_host, place.rpartition("/")[2])


def text(place: str, *names: str, more: str = "") -> list[str]:
    """Return a directory node and a file node in it for each name."""
    return [
        f"directory('{place}', mode='0755')",
        *(
            f"file('{place}/{name}', content='{name}\\n', mode='0644', requires=['directory:{place}']{more})"
            for name in names
        ),
    ]


def listed(host: Host, place: str) -> list[str]:
    return sorted(path.name for path in host.path(place).iterdir()) if host.path(place).exists() else []


def test_a_file_that_gets_its_content_back_is_restored(site: Site, light_host: Host, place: str) -> None:
    light_host.write(f"{place}/mine", "was here\n")
    site.play(f"file('{place}/mine', content='new', backup='.old')")
    site("apply", "site.py", "--yes")
    assert f"✓ file:{place}/mine  restored\n" in site("destroy", "site.py", "--yes").out
    assert listed(light_host, place) == ["mine"]


@pytest.mark.parametrize("damage, why", [("truncate -s 3", "is damaged"), ("rm", "can't be read")])
def test_damaged_former_content_restores_nothing(
    site: Site, light_host: Host, place: str, damage: str, why: str
) -> None:
    site.fresh()
    light_host.write(f"{place}/mine", "was here\n")
    site.play(f"file('{place}/mine', content='new')")
    site("apply", "site.py", "--yes")
    light_host.run(["sh", "-c", f"{damage} /var/lib/statecfg/before/*"])
    failed = site("destroy", "site.py", "--yes", code=1).out
    assert why in failed and "restore this file from a backup" in failed
    assert light_host.read(f"{place}/mine") == "new"


def test_resources_that_left_the_definition_stay_until_pruned(site: Site, light_host: Host, place: str) -> None:
    light_host.write(f"{place}/mine", "was here\n", mode=0o600)
    site.play(*text(place, "mine", "a", "b"))
    site("apply", "site.py", "--yes")
    site.play(*text(place, "b"))
    planned = site("plan", "site.py", "--detailed-exitcode")
    assert f"  - file:{place}/mine  left the definition, stays (apply --prune removes it)" in planned.out
    assert "2 resources left the definition and stay: apply --prune removes them.\n" in planned.out
    assert planned.out.endswith("Plan: 0 to add, 0 to change, 0 to destroy.\n")
    site("apply", "site.py", "--yes")
    assert listed(light_host, place) == ["a", "b", "mine"]

    planned = site("plan", "site.py", "--prune", "--detailed-exitcode", code=2)
    assert f"  - file:{place}/a  removed  (site.py:" in planned.out
    assert f"  - file:{place}/mine  restored  (site.py:" in planned.out
    assert "        - mine\n        + was here\n" in planned.out
    assert "      mode  0644 → 0600\n" in planned.out
    assert "To apply it: statecfg apply site.py --prune --ssh-config" in planned.out
    assert planned.out.endswith("Plan: 0 to add, 0 to change, 2 to destroy.\n")
    assert light_host.read(f"{place}/mine") == "mine\n"
    done = site("apply", "site.py", "--prune", "--yes")
    assert f"✓ file:{place}/a  removed\n" in done.out
    assert "Applied: 0 added, 0 changed, 2 destroyed, 2 unchanged on 1 host" in done.out
    assert listed(light_host, place) == ["b", "mine"]
    assert light_host.read(f"{place}/mine") == "was here\n"
    assert light_host.path(f"{place}/mine").stat().st_mode & 0o777 == 0o600
    assert site("plan", "site.py", "--prune", "--detailed-exitcode").out.count("removed") == 0


def test_a_playbook_can_enable_prune(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "a", "b"))
    site("apply", "site.py", "--yes")
    site.play(*text(place, "b"), head=", prune=True")
    assert names(site.report("plan", "site.py")["removals"]) == [f"file:{place}/a"]
    site("apply", "site.py", "--yes")
    assert listed(light_host, place) == ["b"]


def test_prune_removes_resources_without_changing_others(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "a", "b", "c"))
    site("apply", "site.py", "--yes")
    light_host.write(f"{place}/b", "drifted\n")
    site.play(*text(place, "b", "new"))
    done = site("prune", "site.py", "--yes")
    assert "Removed: 2 destroyed on 1 host" in done.out
    assert listed(light_host, place) == ["b"]
    assert light_host.read(f"{place}/b") == "drifted\n"
    again = site("prune", "site.py", "--yes")
    assert "  ✓ Nothing to remove.\n\nRemoved: 0 destroyed on 1 host" in again.out
    refused = site("prune", "site.py", code=5)
    assert "Cannot ask for confirmation" in refused.err


def test_destroy_removes_everything_and_reports_when_nothing_is_left(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "a", "b"))
    site("apply", "site.py", "--yes")
    site.play(*text(place, "b", "never-applied"))
    done = site("destroy", "site.py", "--yes")
    assert "Removed: 3 destroyed on 1 host" in done.out
    assert not light_host.path(place).exists()
    again = site("destroy", "site.py", "--yes")
    assert f"the ledger contains no resources of {site.name}/site.py on this host" in again.out
    site("apply", "site.py", "--yes")
    assert listed(light_host, place) == ["b", "never-applied"]


def test_destroy_with_an_invalid_playbook_removes_nothing(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "a"))
    site("apply", "site.py", "--yes")
    site.play(*text(place, "a", more=", moed='0644'"))
    wrong = site("destroy", "site.py", "--yes", code=5)
    assert "did you mean `mode`" in wrong.err
    assert listed(light_host, place) == ["a"]


def test_destroy_works_without_the_playbook_file(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "a"))
    site("apply", "site.py", "--yes")
    (site.base / "site.py").unlink()
    assert (
        "'site.py' does not exist. With --hosts, the file does not have to exist."
        in site("destroy", "site.py", code=5).err
    )
    nothing = site("destroy", "site.py", "--hosts", "all", "--yes")
    assert "the ledger contains no resources of site.py" in nothing.out
    assert listed(light_host, place) == ["a"]
    done = site("destroy", f"{site.name}/site.py", "--hosts", light_host.name, "--yes")
    assert "Removed: 2 destroyed on 1 host" in done.out
    assert not light_host.path(place).exists()
    (run, *_) = site.report("run-history", "--playbook", f"{site.name}/site.py")["history"]
    assert (run["mode"], run["summary"]) == ("destroy", {"changed": 2})


def test_prune_and_destroy_refuse_to_remove_a_protected_resource(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place), *text(place, "a", more=", protect=True")[1:], *text(place, "b")[1:])
    site("apply", "site.py", "--yes")
    site.play(*text(place))
    why = f"file:{place}/a is protected: define it with `protect: false` and apply that first"
    assert f"an apply would be refused: {why}" in site("plan", "site.py", "--prune").out
    for arguments in (["apply", "site.py", "--prune"], ["prune", "site.py"], ["destroy", "site.py"]):
        refused = site(*arguments, "--yes", code=5)
        assert f"  ✗ {why}\n" in refused.out
        assert f"  · would be removed: file:{place}/a" in refused.out
        assert listed(light_host, place) == ["a", "b"]
    site.play(*text(place), *text(place, "a", more=", protect=False")[1:])
    site("apply", "site.py", "--yes")
    site.play(*text(place))
    site("apply", "site.py", "--prune", "--yes")
    assert listed(light_host, place) == []


def test_pruning_more_than_half_of_a_host_needs_an_explicit_yes(site: Site, light_host: Host, place: str) -> None:
    site.fresh()
    site.play(*text(place, "a", "b", "c"))
    site("apply", "site.py", "--yes")
    site.play(*text(place))
    why = "this would remove 3 of the 4 resources that statecfg manages on this host"
    planned = site("plan", "site.py", "--prune", "--out", "x.plan").out
    assert f"an apply would be refused: {why}" in planned and "To apply it: statecfg apply x.plan --yes\n" in planned
    for arguments in (["apply", "site.py", "--prune"], ["apply", "x.plan"], ["prune", "site.py"]):
        refused = site(*arguments, code=5, STATECFG_YES="1")
        assert why in refused.out
        assert listed(light_host, place) == ["a", "b", "c"]
    site("apply", "x.plan", "--yes")
    assert listed(light_host, place) == []


def test_two_playbooks_leave_each_others_resources_alone(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "a", "shared"), file="one.py")
    site.play(*text(place, "b", "shared"), file="two.py")
    site("apply", "one.py", "--yes")
    site("apply", "two.py", "--yes")
    site.play(*text(place), file="one.py")
    assert names(site.report("plan", "two.py")["left"]) == []
    planned = site.report("plan", "one.py", "--prune")
    assert sorted(names(planned["removals"])) == [f"file:{place}/a", f"file:{place}/shared"]
    done = site("apply", "one.py", "--prune", "--yes")
    assert listed(light_host, place) == ["b", "shared"]
    assert f"file:{place}/shared  forgotten" in done.out
    assert "1 destroyed, 1 unchanged, 1 forgotten" in done.out
    site("destroy", "one.py", "--yes")
    assert listed(light_host, place) == ["b", "shared"]
    assert site("verify", "two.py").out.endswith("0 in the definition, 3 as defined.\n")
    site("destroy", "two.py", "--yes")
    assert not light_host.path(place).exists()


def test_a_ledger_of_another_machine_prunes_nothing(site: Site, light_host: Host, place: str) -> None:
    site.fresh()
    site.play(*text(place, "a", "b", "c"))
    site("apply", "site.py", "--yes")
    site.change_ledger("UPDATE meta SET value = 'f00f00f00f00f00f' WHERE key = 'machine'")
    site.play(*text(place, "b", "c"))
    for arguments in (["plan", "site.py", "--prune"], ["prune", "site.py", "--yes"]):
        said = site(*arguments)
        assert "the ledger belongs to another machine" in said.out
        assert listed(light_host, place) == ["a", "b", "c"]


def test_a_lost_ledger_prunes_nothing_and_says_why(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "a", "b", "c"))
    site("apply", "site.py", "--yes")
    site.fresh()
    site.play(*text(place, "b", "c"))
    planned = site("plan", "site.py", "--prune")
    assert (
        "ledger was lost or replaced since this controller's last run (it has none now): statecfg prunes nothing"
        in planned.out
    )
    pruned = site("prune", "site.py", "--yes")
    assert "ledger was lost or replaced since this controller's last run (now " in pruned.out
    destroyed = site("destroy", "site.py", "--yes")
    assert f"the ledger contains no resources of {site.name}/site.py on this host" in destroyed.out
    assert listed(light_host, place) == ["a", "b", "c"]


def test_plan_and_apply_both_notice_a_replaced_ledger(site: Site, light_host: Host, place: str) -> None:
    site.fresh()
    site.play(*text(place, "a", "b", "c"))
    site("apply", "site.py", "--yes")
    site.change_ledger("UPDATE meta SET value = 'f00f00f00f00f00f' WHERE key = 'lineage'")
    site.play(*text(place, "b", "c"))
    for verb in ("plan", "apply"):
        report = site.report(verb, "site.py", "--prune", *(["--yes"] if verb == "apply" else []))
        assert names(report["removals"]) == []
        assert names(report["left"]) == [f"file:{place}/a"]
        assert any("ledger was lost or replaced" in text for text in report["warnings"])
    assert listed(light_host, place) == ["a", "b", "c"]
    site("prune", "site.py", "--yes")
    assert listed(light_host, place) == ["b", "c"]


def test_renaming_a_resource_removes_nothing(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place), *text(place, "a", more=", provides='old name'")[1:])
    site("apply", "site.py", "--yes")
    light_host.path(f"{place}/a").chmod(0o600)
    site.play(*text(place), *text(place, "a", more=", provides='new name'")[1:])
    planned = site.report("plan", "site.py", "--prune")
    assert names(planned["removals"]) == names(planned["left"]) == []
    site("apply", "site.py", "--prune", "--yes")
    assert light_host.read(f"{place}/a") == "a\n"
    site.play(*text(place))
    assert names(site.report("plan", "site.py", "--prune")["removals"]) == ["new name"]
    site("prune", "site.py", "--yes")
    assert listed(light_host, place) == []


def test_a_new_type_at_a_path_replaces_the_old_resource(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "a"))
    site("apply", "site.py", "--yes")
    site.play(*text(place), f"symlink('{place}/a', target='/etc/hostname', requires=['directory:{place}'])")
    planned = site.report("plan", "site.py")
    assert names(planned["removals"]) == [f"file:{place}/a"]
    site("apply", "site.py", "--yes")
    assert light_host.path(f"{place}/a").is_symlink()
    site.play(*text(place))
    site("prune", "site.py", "--yes")
    assert listed(light_host, place) == []


def test_a_run_limited_by_tags_cannot_prune(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place), *text(place, "a", more=", tags=['some']")[1:], *text(place, "b")[1:])
    site("apply", "site.py", "--yes")
    for verb in ("plan", "verify"):
        assert names(site.report(verb, "site.py", "-t", "some")["left"]) == []
    for verb, yes in (("plan", []), ("apply", ["--yes"])):
        refused = site(verb, "site.py", "-t", "some", "--prune", *yes, code=5).err
        assert "--prune requires the whole definition" in refused
    for verb in ("prune", "destroy"):
        assert "No such option '-t'" in site(verb, "site.py", "-t", "some", code=5).err
    site("apply", "site.py", "-t", "some", "--yes")
    assert listed(light_host, place) == ["a", "b"]


def test_a_saved_plan_removes_only_what_was_planned_or_is_refused(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "a", "b"))
    site("apply", "site.py", "--yes")
    site.play(*text(place, "b"))
    site("plan", "site.py", "--prune", "--out", "x.plan")
    assert json.loads((site.base / "x.plan").read_text())["choices"]["prune"] is True
    assert "--tags contradicts the plan" in site("apply", "x.plan", "--tags", "some", code=5).err
    light_host.write(f"{place}/a", "somebody's work\n")
    stale = site("apply", "x.plan", code=6)
    assert f"file:{place}/a: planned: removed (remove); now: forgotten" in stale.out
    assert light_host.read(f"{place}/a") == "somebody's work\n"
    site.play(*text(place, "a", "b"))
    assert "≠ playbook site.py: has changed since the plan was made" in site("apply", "x.plan", code=6).err
    site.play(*text(place, "b"))
    light_host.path(f"{place}/a").unlink()
    assert f"file:{place}/a: planned: removed (remove); now: forgotten" in site("apply", "x.plan", code=6).out
    site("plan", "site.py", "--prune", "--out", "x.plan")
    assert "1 forgotten" in site("apply", "x.plan").out
    assert "now: not there" in site("apply", "x.plan", code=6).out


def test_a_saved_plan_without_prune_removes_nothing(site: Site, light_host: Host, place: str) -> None:
    site.play(*text(place, "a", "b"))
    site("apply", "site.py", "--yes")
    site.play(*text(place, "b", "c"))
    site("plan", "site.py", "--out", "x.plan")
    site("apply", "x.plan")
    assert listed(light_host, place) == ["a", "b", "c"]


def test_pruning_a_resource_with_a_secret_does_not_show_it(site: Site, light_host: Host, place: str) -> None:
    site.play(
        *text(place, "b"),
        f"file('{place}/a', content=secret('db', env='DB_PASSWORD'), mode='0600', requires=['directory:{place}'])",
    )
    site("apply", "site.py", "--yes", DB_PASSWORD="canary-42-canary")
    assert light_host.read(f"{place}/a") == "canary-42-canary"
    site.play(*text(place, "b"))
    seen = site("plan", "site.py", "-v", "--diff", "--json-into", "r.json", "--markdown-into", "r.md", "-o", "x.plan")
    pruned = site("apply", "site.py", "--prune", "--yes", "-vv", "--diff", "--json-into", "d.json")
    assert not light_host.path(f"{place}/a").exists()
    files = "".join((site.base / name).read_text() for name in ("r.json", "r.md", "x.plan", "d.json"))
    assert "canary" not in seen.out + seen.err + pruned.out + pruned.err + files
    assert "not shown: it may contain a secret" in seen.out


A = "line_in_file('{}', line=secret('token', env='TOKEN'), create=True, provides='a')"
B = "line_in_file('{}', line='b={}', match='^b=', create=True, provides='b'{})"
CANARIES = {"TOKEN": "canary-41-canary", "OTHER": "canary-43-canary"}


@pytest.mark.parametrize("follow", [False, True], ids=["a file", "a link to it"])
@pytest.mark.parametrize(
    ("nodes", "verb", "env"),
    [
        ([B], "apply", {}),
        ([B], "plan", {}),
        ([B], "apply --prune", {}),
        ([B.replace("'b'", "'b', backup='.old'")], "apply", {}),
        (["command('c', argv=['true'])", B.replace("'b'", "'b', requires=['command:c']")], "apply", {}),
        ([A, B], "apply", {"TOKEN": "another-value"}),
        ([A, B], "verify", {"TOKEN": "another-value"}),
        ([A, B], "destroy", {}),
        ([A, B], "destroy", CANARIES),
    ],
    ids=[
        "removed",
        "planned",
        "pruned",
        "backup",
        "known later",
        "changed",
        "verified",
        "destroyed",
        "with the secret",
    ],
)
def test_another_node_of_the_file_does_not_show_a_former_secret(
    site: Site, light_host: Host, place: str, nodes: list[str], verb: str, env: dict[str, str], follow: bool
) -> None:
    """A run may lack the former value of a secret and can't mask it then, so it shows no content of this file."""
    path = f"{place}/file"
    light_host.write(path, "# local settings\n")
    if follow:
        light_host.run(["ln", "-s", path, f"{place}/link"])
    first = f"{place}/link" if follow else path
    site.play(A.format(first), B.format(path, 1, ""))
    site("apply", "site.py", "--yes", **CANARIES)
    assert CANARIES["TOKEN"] in light_host.read(path)
    site.play(*(node.format(*((first,) if node == A else (path, 2, ""))) for node in nodes))
    words = verb.split()
    more = ["--hosts", light_host.name] if words[0] == "destroy" else ["-v", "--markdown-into", "r.md"]
    more += ["--yes"] if words[0] in ("apply", "destroy") else []
    ran = site(*words, "site.py", "--diff", "--json-into", "r.json", *more, code=None, **env)
    assert ran.code == (2 if words[0] == "verify" else 0), ran.err
    report = (site.base / "r.json").read_text()
    assert "not shown: it may contain a secret" in report
    written = "".join(path.read_text() for path in (site.base / "r.md",) if path.exists())
    assert "canary" not in ran.out + ran.err + report + written


def test_another_playbook_does_not_show_a_secret_in_a_file(site: Site, light_host: Host, place: str) -> None:
    light_host.write(f"{place}/file", "# local settings\n")
    site.play(A.format(f"{place}/file"))
    site("apply", "site.py", "--yes", **CANARIES)
    site.play(B.format(f"{place}/file", 1, ""), file="other.py")
    ran = site("apply", "other.py", "--yes", "--diff", "-v", "--json-into", "r.json")
    assert CANARIES["TOKEN"] in light_host.read(f"{place}/file")
    assert "canary" not in ran.out + ran.err + (site.base / "r.json").read_text()


@pytest.mark.parametrize("other", ["", "mine\n"])
def test_a_backup_that_others_changed_stays(site: Site, light_host: Host, place: str, other: str) -> None:
    light_host.write(f"{place}/a", "old\n")
    light_host.write(f"{place}/b", "old\n")
    for text in ("one", "two"):  # the second apply makes the copy anew
        site.play(
            f"file('{place}/a', content='{text}\\n', backup='.old')",
            f"line_in_file('{place}/b', line='{text}', backup='.old')",
        )
        site("apply", "site.py", "--yes")
    for name in ("a.old", "b.old") if other else ():
        light_host.write(f"{place}/{name}", other)
    said = site("destroy", "site.py", "--yes").out
    assert light_host.read(f"{place}/a") == "old\n"
    for name in ("a.old", "b.old"):
        assert (f"others have changed the backup copy {place}/{name}: it stays" in said) is bool(other)
        assert light_host.path(f"{place}/{name}").exists() is bool(other)
