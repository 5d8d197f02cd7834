"""Saved plans: made in one checkout, applied in another, and refused if any input differs."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from statecfg.cli.main import VERSION
from statecfg.problems import InvalidInput
from statecfg.run.saved import plan_file
from tests import ROOT
from tests.host.command import Ran, statecfg

SECRET = "canary-of-the-database"
YAML = """\
hosts: app
vars: {{token: !secret {{env: TOKEN}}}}
include: parts/more.yml
resources:
  - directory: {out}
  - note: {out}/note
    requires: [directory:{out}]
  - file: {out}/site.conf
    template: site.conf.j2
    requires: [directory:{out}]
  - file: {out}/logo
    source: logo.bin
    requires: [directory:{out}]
"""
NOTE = '''\
from __future__ import annotations

from statecfg.remote.graph.nodetype import node_type
from statecfg.remote.graph.ops import op


@node_type
def note(path: str) -> None:
    """Keep a note."""


@op
def put(machine, path):
    """Write the note."""
    return machine.write(path, "noted\\n")


@note.check
def check(node, world):
    """Write the note if it is missing."""
    return [] if world.stat(node.attrs["path"]) is not None else [put(node.attrs["path"])]
'''
INVENTORY = """\
hosts:
  app: {transport: local, vars: {port: 8080}}
groups:
  all: {vars: {zone: eu}}
"""


@dataclass
class Checkout:
    """A checkout of the project `site` on a user's machine; all checkouts write below `out`."""

    root: Path
    env: dict[str, str]
    out: Path

    def __call__(self, *arguments: str | Path, code: int = 0, cwd: Path | None = None, **env: str) -> Ran:
        return statecfg(*arguments, cwd=cwd or self.root, code=code, **{**self.env, **env})

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.root / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def copied(self, to: Path) -> Checkout:
        """Return a copy on another machine, with another path, home and store but the same host."""
        shutil.copytree(self.root, to / "checkout")
        return Checkout(to / "checkout", machine(to, self.env["STATECFG_STATE_DIR"]), self.out)


def machine(base: Path, ledger: str) -> dict[str, str]:
    (base / "home").mkdir(parents=True)
    own = {"HOME": f"{base}/home", "XDG_STATE_HOME": f"{base}/home/state", "STATECFG_STORE": f"{base}/store.db"}
    return {**own, "STATECFG_STATE_DIR": ledger, "TOKEN": SECRET, "STATECFG_LOCK_TIMEOUT": "60"}


@pytest.fixture
def site(tmp_path: Path) -> Checkout:
    """Give a project that has every kind of input."""
    root, out = tmp_path / "alice/work/shop", tmp_path / "out"
    more = f"resources:\n  - file: {out}/more\n    content: more\n    requires: ['directory:{out}']\n"
    files = {
        "statecfg.toml": 'name = "site"\n',
        "inventory.yml": INVENTORY,
        "playbooks/web.yml": YAML.format(out=out),
        "playbooks/parts/more.yml": more,
        "templates/site.conf.j2": '{% include "head.j2" %}\nport {{ port }} {{ zone }} {{ token }}\n',
        "templates/head.j2": "# head\n",
        "files/logo.bin": "logo\n",
        "resources/note.py": NOTE,
        "vars.yml": "port: 8090\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Checkout(root, machine(tmp_path / "alice/machine", str(tmp_path / "ledger")), out)


def test_a_saved_plan_can_be_applied_from_another_checkout(site: Checkout, tmp_path: Path) -> None:
    site("plan", "playbooks/web.yml", "-e", "@vars.yml", "--out", "web.plan")
    other = site.copied(tmp_path / "ci")
    shutil.rmtree(site.root)
    shutil.rmtree(site.env["HOME"])
    ran = other("apply", "web.plan")
    assert (site.out / "site.conf").read_text() == f"# head\nport 8090 eu {SECRET}\n"
    assert "Applied: 5 added" in ran.out
    assert "+ port 8090 eu <secret TOKEN>" in ran.out  # a log shows what happened
    assert SECRET not in ran.out + ran.err
    # The plan is done, so the host is no longer in the state for which the plan was made.
    assert "now: nothing to do" in other("apply", "web.plan", code=6).out


CHANGES = {
    "playbook playbooks/web.yml": ("playbooks/web.yml", "include:", "# moved\ninclude:"),
    "include playbooks/parts/more.yml": ("playbooks/parts/more.yml", "content: more", "content: less"),
    "template templates/site.conf.j2": ("templates/site.conf.j2", "port {{", "PORT {{"),
    "template templates/head.j2": ("templates/head.j2", "head", "HEAD"),
    "file files/logo.bin": ("files/logo.bin", "logo", "LOGO"),
    "node type resources/note.py": ("resources/note.py", "noted", "NOTED"),
    "inventory inventory.yml": ("inventory.yml", "8080", "8081"),
    "variables vars.yml": ("vars.yml", "8090", "8091"),
    "settings statecfg.toml": ("statecfg.toml", "\n", "\nforks = 3\n"),
}


def test_a_stale_plan_names_each_input_that_changed(site: Checkout, tmp_path: Path) -> None:
    site("plan", "playbooks/web.yml", "-e", "@vars.yml", "--out", "web.plan")
    for number, (name, (file, old, new)) in enumerate(CHANGES.items()):
        other = site.copied(tmp_path / f"ci{number}")
        other.edit(file, old, new)
        refused = other("apply", "web.plan", code=6)
        assert "error[SC0432]: saved plan is stale" in refused.err
        differences = [line.strip() for line in refused.err.splitlines() if "≠" in line]
        assert differences[0] == f"≠ {name}: has changed since the plan was made"
        # For the inventory the changed variable is named, too.
        assert differences[1:] == (["≠   app: its variable `port` has changed"] if "inventory" in name else [])
        assert "help: plan again" in refused.err
    assert not site.out.exists()
    other = site.copied(tmp_path / "gone")
    (other.root / "templates/head.j2").unlink()
    missing = other("apply", "web.plan", code=6).err
    assert "≠ template templates/head.j2: " in missing and "head.j2 does not exist" in missing
    told = site("apply", "web.plan", code=6, TOKEN="another-one").err
    assert "≠ secret `TOKEN`: has another value" in told
    assert "another-one" not in told
    for name in ("resources/new.py", "resources/sub/new.py"):
        other = site.copied(tmp_path / name)
        (other.root / name).parent.mkdir(exist_ok=True)
        (other.root / name).write_text("X = 1\n")
        assert f"≠ node type {name}: was not used when" in other("apply", "web.plan", code=6).err
    assert not site.out.exists()


def test_a_stale_plan_names_changed_inventory_values(site: Checkout) -> None:
    site.edit("inventory.yml", "hosts:\n", "hosts:\n  far: {address: 192.0.2.1}\n")
    site("plan", "playbooks/web.yml", "--out", "web.plan")
    site.edit("inventory.yml", "{transport: local, vars: {port: 8080}}", "{address: 192.0.2.7, vars: {ports: 8080}}")
    told = site("apply", "web.plan", code=6).err
    assert "app: its address was app and is 192.0.2.7" in told
    assert "app: its variable `port` is gone" in told
    assert "app: its variable `ports` is new" in told


def test_a_saved_plan_must_be_applied_in_its_own_project(site: Checkout, tmp_path: Path) -> None:
    site("plan", "playbooks/web.yml", "--out", tmp_path / "web.plan")
    other = site.copied(tmp_path / "ci")
    other.edit("statecfg.toml", "site", "shop")
    refused = other("apply", tmp_path / "web.plan", code=6).err
    assert f"≠ project: the plan belongs to `site`, and {other.root} is `shop`" in refused
    other.edit("statecfg.toml", "shop", "site")
    assert "≠ project: the plan belongs to `site`" in other("apply", tmp_path / "web.plan", cwd=Path("/"), code=6).err
    (other.root / "playbooks/web.yml").rename(other.root / "playbooks/site.yml")
    refused = other("apply", tmp_path / "web.plan", code=6).err
    assert "≠ playbook playbooks/web.yml: " in refused
    (other.root / "playbooks/site.yml").rename(other.root / "playbooks/web.yml")
    applied = other("apply", "-", "--project", other.root, cwd=Path("/"), stdin=(tmp_path / "web.plan").read_text())
    assert "5 added" in applied.out


def test_a_plan_from_another_version_is_refused_with_both_versions(site: Checkout, tmp_path: Path) -> None:
    site("plan", "playbooks/web.yml", "--out", "web.plan")
    source, version = (ROOT / "statecfg/cli/main.py").read_text(), VERSION
    shutil.copytree(ROOT / "statecfg", tmp_path / "newer/statecfg", ignore=shutil.ignore_patterns("__pycache__"))
    main = tmp_path / "newer/statecfg/cli/main.py"
    main.write_text(source.replace(f'VERSION = "{version}"', 'VERSION = "99.0.1"'))
    refused = site("apply", "web.plan", code=6, PYTHONPATH=str(tmp_path / "newer")).err
    assert f"web.plan was made by statecfg {version}; this is statecfg 99.0.1" in refused
    main.write_text(source)
    executor = tmp_path / "newer/statecfg/remote/session.py"
    executor.write_text(executor.read_text() + "# changed\n")
    refused = site("apply", "web.plan", code=6, PYTHONPATH=str(tmp_path / "newer")).err
    assert f"≠ statecfg: this {version} has other code for hosts than the {version} that made the plan" in refused
    old = {"format": "statecfg plan", "version": 1, "playbook": "x", "directory": "y", "choices": {}, "hosts": {}}
    (site.root / "old.plan").write_text(json.dumps(old, indent=1))
    assert f"made by statecfg 0.3.0 or older; this is statecfg {version}" in site("apply", "old.plan", code=6).err
    assert not site.out.exists()


def test_options_that_contradict_a_plan_are_refused(site: Checkout, tmp_path: Path) -> None:
    site("plan", "playbooks/web.yml", "-l", "app", "-e", "port=1", "--out", "web.plan")
    for given, told in (
        (("-l", "other"), "--limit contradicts the plan, which was made with --limit app"),
        (("-t", "x"), "--tags contradicts the plan, which was made without --tags"),
        (("-e", "port=2"), "--extra-vars contradicts the plan"),
        (("--prune",), "--prune contradicts the plan, which was made without --prune"),
        (("-b",), "--become contradicts the plan"),
        (("-u", "root"), "--user contradicts the plan"),
    ):
        assert told in " ".join(site("apply", "web.plan", *given, code=5).err.split())
    assert "--project is only for saved plans" in site("apply", "playbooks/web.yml", "--project", ".", code=5).err
    assert not site.out.exists()
    (tmp_path / "elsewhere.yml").write_text(INVENTORY)
    again = ("-l", "app", "-e", "port=1", "-i", tmp_path / "elsewhere.yml")
    assert "5 added" in site("apply", "web.plan", *again).out


def test_input_files_outside_the_project_can_be_given_again_at_apply(site: Checkout, tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "prod.yml").write_text(INVENTORY.replace("8080", "9090"))
        (tmp_path / name / "vars.yml").write_text("zone: us\n")
    given = ("-i", tmp_path / "here/prod.yml", "-e", f"@{tmp_path}/here/vars.yml")
    site("plan", "playbooks/web.yml", *given, "--out", "web.plan")
    shutil.rmtree(tmp_path / "here")
    refused = site("apply", "web.plan", code=6).err
    assert f"≠ inventory {tmp_path}/here/prod.yml: " in refused and "/prod.yml does not exist" in refused
    again = ("-i", tmp_path / "there/prod.yml", "-e", f"@{tmp_path}/there/vars.yml")
    site("apply", "web.plan", *again)
    assert "port 9090 us" in (site.out / "site.conf").read_text()


def test_damaged_and_edited_plans_are_refused(site: Checkout) -> None:
    site("plan", "playbooks/web.yml", "--out", "web.plan")
    path = site.root / "web.plan"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    whole = path.read_text()
    for text in (
        whole[: len(whole) // 2],
        whole.replace("8080", "8081", 1) if "8080" in whole else whole.replace('"mkdir"', '"rmdir"', 1),
        whole + "\n",
        whole.replace('"sha256": "', '"sha256": "0', 1),
        json.dumps(json.loads(whole)),
        "[" * 100_000,
        '{"format": "statecfg plan", "version": 2, "statecfg": "',
        "",
        "\0" * 100,
    ):
        path.write_text(text)
        for verb in ("apply", "show"):
            told = site(verb, "web.plan", code=5).err
            assert "error[SC0430]: saved plan can't be used" in told
    with path.open("wb") as stream:
        stream.write(whole.encode())
        stream.truncate(257 << 20)
    assert "is larger than 268,435,456 bytes" in site("show", "web.plan", code=5).err
    # An edited plan with a recomputed checksum must not cause a traceback.
    plan = json.loads(whole)
    for key in ("format", "version", "statecfg", "sha256"):
        del plan[key]
    report = plan["hosts"]["app"]["report"]
    for place, key, value in (
        *((plan, key, None) for key in plan),
        (plan, "playbook", "../../../tmp/evil.py"),
        (plan, "playbook", "a\0b"),
        (plan["choices"], "limit", 3),
        (plan["inputs"][0], "kind", "evil"),
        (report, "layers", [[None]]),
        (report, "layers", [[{"name": "x"}]]),
        (report, "status", "fine"),
        (report, "units", "x"),
        (report, "fingerprints", [1]),
    ):
        before = place.get(key)
        place[key] = value
        with pytest.raises(InvalidInput) as refused:
            plan_file.parse(plan_file.text(plan, VERSION), "web.plan", VERSION)
        assert refused.value.problems[0].code == "SC0430"
        place[key] = before
    plan_file.parse(plan_file.text(plan, VERSION), "web.plan", VERSION)
    assert not site.out.exists()


def test_a_plan_can_be_read_from_standard_input_or_a_pipe(site: Checkout) -> None:
    site("plan", "playbooks/web.yml", "--out", "web.plan")
    text = (site.root / "web.plan").read_text()
    assert "Plan: 5 to add" in site("show", "-", stdin=text).out
    assert "-K reads the password from stdin" in site("apply", "-", "-K", code=5, stdin=text).err
    assert "standard input is not a saved plan" in site("apply", "-", code=5, stdin="hosts: app\n").err
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        stream.write(text)
    env = {**os.environ, **site.env, "PYTHONPATH": str(ROOT)}
    argv = ["statecfg", "apply", f"/dev/fd/{reading}"]
    done = subprocess.run(
        [sys.executable, "-m", *argv], cwd=site.root, env=env, pass_fds=[reading], capture_output=True, text=True
    )
    os.close(reading)
    assert done.returncode == 0, done.stderr
    assert "5 added" in done.stdout


def test_a_plan_holds_no_secret(site: Checkout) -> None:
    long = "x" * 70_000 + "{{ token }}"
    (site.root / "templates/head.j2").write_text(long)
    site("plan", "playbooks/web.yml", "--out", "one.plan")
    site("plan", "playbooks/web.yml", "--out", "two.plan", TOKEN="another-canary")
    one, two = (json.loads((site.root / f"{name}.plan").read_text()) for name in ("one", "two"))
    assert SECRET not in json.dumps(one)
    # Only the scrypt digests differ, so no other digest can be used to guess the secret.
    assert one["secrets"] != two["secrets"]
    for plan in (one, two):
        for key in ("sha256", "run", "secrets", "salt", "made"):
            del plan[key]
        for host in plan["hosts"].values():
            host["inventory"].pop("vars")
            for key in ("seconds", "duration", "facts", "ledger"):
                host["report"].pop(key, None)
    shown = json.dumps(two).replace(f"({70_000 + len('another-canary')}", f"({70_000 + len(SECRET)}")
    assert [one["hosts"]["app"][key] for key in ("definition", "nodes")] == [
        two["hosts"]["app"][key] for key in ("definition", "nodes")
    ]
    assert (
        json.loads(shown)["hosts"]["app"]["report"]["fingerprints"].keys()
        == one["hosts"]["app"]["report"]["fingerprints"].keys()
    )
    told = site("plan", "playbooks/web.yml", "-e", f"zone={SECRET}", "--out", "three.plan", code=5).err
    assert "the plan file would contain this value" in told
    assert SECRET not in told
    assert not (site.root / "three.plan").exists()


DIGESTS = [name for name in sorted(hashlib.algorithms_guaranteed) if not name.startswith("shake")]


def test_a_plan_holds_no_quick_digest_of_a_secret(site: Checkout) -> None:
    """A quick digest would tell whether a guess is right, with the salts of the plan and without them."""
    entry = f'  - file: {site.out}/pin\n    content: "{{{{ token }}}}"\n    requires: [directory:{site.out}]\n'
    site.edit("playbooks/web.yml", "  - note:", f"{entry}  - note:")
    site.edit("inventory.yml", "zone: eu", "zone: eu, pin: !secret {env: TOKEN}")
    site.out.mkdir()
    (site.out / "pin").write_text(f"old {SECRET}\n")
    values = [SECRET, f"{SECRET}\n", f"old {SECRET}\n", f"# head\nport 8080 eu {SECRET}\n", json.dumps(SECRET)]
    recorded = []
    for name in ("one.plan", "two.plan"):
        site("plan", "playbooks/web.yml", "--out", name)
        text = (site.root / name).read_text()
        plan = json.loads(text)
        recorded.append(plan["secrets"]["TOKEN"])
        assert plan["secrets"].keys() == {"TOKEN"} and SECRET not in text
        hexadecimal = [plan["salt"], recorded[-1]["salt"]]
        salts = [b"", *(salt.encode() for salt in hexadecimal), *map(bytes.fromhex, hexadecimal)]
        for value, salt, algorithm in itertools.product(map(str.encode, values), salts, DIGESTS):
            for data in (salt + value, value + salt):
                raw = hashlib.new(algorithm, data).digest()
                for written in (raw.hex(), base64.b64encode(raw).decode()):
                    assert written[:12] not in text, (algorithm, value)
    one, two = recorded
    assert one["salt"] != two["salt"] and one["scrypt"] != two["scrypt"]


PYTHON = """\
import random
from statecfg import play
from statecfg.resources import directory, file
import beside
from lib import deep

@play(hosts="app")
def site(host):
    import later
    out = directory("{out}")
    return [out, file("{out}/a", content=beside.TEXT + deep.TEXT + later.TEXT, requires=[out])]
"""
HY = """\
(require statecfg.dialects.hy [defplay])
(import statecfg.resources [directory file])
(import beside [TEXT] lib.deep later)

(defplay site [host] {{:hosts "app"}}
  (setv out (directory "{out}"))
  [out (file "{out}/a" {{:content (+ TEXT lib.deep.TEXT later.TEXT) :requires [out]}})])
"""


@pytest.mark.parametrize("language", ["py", "hy"])
def test_a_change_in_an_imported_module_makes_a_plan_stale(site: Checkout, language: str) -> None:
    text = (PYTHON if language == "py" else HY).format(out=site.out)
    (site.root / f"playbooks/site.{language}").write_text(text)
    modules = {"playbooks/beside.py": "one", "lib/deep.py": "two", "lib/__init__.py": "", "later.py": "three"}
    for name, said in modules.items():
        (site.root / name).parent.mkdir(exist_ok=True)
        (site.root / name).write_text(f"TEXT = {said!r}\n")
    site("plan", f"playbooks/site.{language}", "--out", "site.plan")
    for name in modules:
        before = (site.root / name).read_text()
        (site.root / name).write_text(before + "# changed\n")
        assert f"≠ module {name}: has changed" in site("apply", "site.plan", code=6).err
        (site.root / name).write_text(before)
    assert "2 added" in site("apply", "site.plan").out
    assert (site.out / "a").read_text() == "onetwothree"


def test_a_nondeterministic_playbook_is_refused_with_the_changed_resource(site: Checkout) -> None:
    (site.root / "playbooks/dice.py").write_text(
        "import time\nfrom statecfg import play\nfrom statecfg.resources import file\n\n@play(hosts='app')\n"
        f"def dice(host):\n    said = str(time.time_ns())\n"
        f"    return [file('{site.out}.t', content=said), file('{site.out}.s', content='')]\n"
    )
    site("plan", "playbooks/dice.py", "--out", "dice.plan")
    refused = site("apply", "dice.plan", code=6).out
    assert f"≠ file:{site.out}.t: its definition has changed" in refused
    assert f"{site.out}.s" not in refused
    assert "No input has changed: evaluating the playbook gave another result this time." in refused


def test_show_prints_the_origin_of_a_saved_plan(site: Checkout, tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        argv = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(site.root), *arguments]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    given = ("plan", "playbooks/web.yml", "-e", "port=1", "--out", tmp_path / "web.plan")
    site(*given)
    assert "Commit:     unknown: this is not a git repository" in site("show", tmp_path / "web.plan").out
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    (site.root / "other.yml").write_text("no input\n")
    site(*given)
    commit = git("rev-parse", "HEAD")
    assert f"{commit}, clean" in site("show", tmp_path / "web.plan").out
    site.edit("templates/head.j2", "head", "HEAD")
    site(*given)
    ran = site("show", tmp_path / "web.plan", cwd=Path("/"))  # needs no project
    assert f"{commit}, dirty: 1 input modified since: templates/head.j2" in ran.out
    assert "Plan of:    playbooks/web.yml in project site" in ran.out
    assert "Chosen:     -e port=1" in ran.out
    assert "Hosts:      app" in ran.out
    assert "+ port 1 eu <secret TOKEN>" in ran.out
    assert ran.out.endswith("Plan: 5 to add, 0 to change, 0 to destroy.\n")
    found = site("show", tmp_path / "web.plan", "--json").json()
    assert found["saved"]["made"]["modified"] == ["templates/head.j2"]
    assert found["saved"]["secrets"] == ["TOKEN"]
    assert found["hosts"]["app"]["summary"] == {"changed": 5}
    told = site("show", tmp_path / "web.plan", "--markdown").out
    assert told.startswith("### Plan: 5 to add")
    assert f"- Commit: `{commit}, dirty" in told
    assert "can't be combined" in site("show", tmp_path / "web.plan", "--markdown", "--json", code=5).err


def test_show_says_when_a_plan_was_made_and_by_whom(site: Checkout) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    site("plan", "playbooks/web.yml", "--out", "web.plan", LOGNAME="ann")
    after = datetime.now(UTC)
    made = site("show", "web.plan", "--json", LOGNAME="bob").json()["saved"]["made"]
    at = datetime.fromisoformat(made["at"])
    assert before <= at <= after and at.utcoffset() == timedelta(0)
    assert made["by"] == f"ann@{socket.gethostname()}"
    said = f"{at:%Y-%m-%d %H:%M:%S} UTC by {made['by']} with statecfg {VERSION}"
    assert f"Made:       {said}\n" in site("show", "web.plan", LOGNAME="bob").out
    assert f"- Made: `{said}`\n" in site("show", "web.plan", "--markdown", LOGNAME="bob").out


def test_a_playbook_with_services_needs_the_same_store(site: Checkout, tmp_path: Path) -> None:
    (site.root / "playbooks/service.yml").write_text(
        f"- service: web\n  hosts: app\n  resources:\n  - directory: {site.out}\n"
    )
    site("plan", "playbooks/service.yml", "--out", "service.plan")
    assert "so the same store is needed" in site("show", "service.plan").out
    other = site.copied(tmp_path / "ci")
    refused = other("apply", "service.plan", code=6).err
    assert f"and the store {other.env['STATECFG_STORE']} does not exist" in refused
    assert "PostgreSQL" in refused
    other("store", "migrate")
    assert "is a different store (" in other("apply", "service.plan", code=6).err
    assert not site.out.exists()
    assert "1 added" in other("apply", "service.plan", "--store", site.env["STATECFG_STORE"]).out


def test_apply_with_yes_shows_the_differences(site: Checkout) -> None:
    assert "+ port 8080 eu <secret TOKEN>" in site("apply", "playbooks/web.yml", "--yes").out
    (site.out / "more").write_text("changed by hand")
    assert "- changed by hand" in site("apply", "playbooks/web.yml", "--yes").out


def test_json_output_reports_a_stale_plan(site: Checkout) -> None:
    site("plan", "playbooks/web.yml", "--out", "web.plan")
    site.edit("inventory.yml", "8080", "8081")
    found = site("apply", "web.plan", "--json", code=6).json()
    assert found["error"] == "stale"
    assert "inventory inventory.yml" in found["problems"][0]["detail"]
