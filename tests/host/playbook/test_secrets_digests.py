"""No fast digest of a secret reaches a report or a saved plan: from one, a weak secret could be guessed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.host.command import statecfg

VALUES = ("hunter2", "letmein")  # of the same length, because reports show the size of content
LONG = "x" * 2100  # longer than the texts that reports show
PLAYBOOK = """\
hosts: "@local"
vars: {{word: !secret {{env: STATECFG_TEST_WORD, name: word}}}}
resources:
  - file: {place}/whole
    content: "{{{{ word }}}}"
  - file: {place}/large
    content: "{{{{ word }}}}{large}"
    mode: "{mode}"
  - file: {place}/gone
    absent: true
  - line_in_file: {place}/lines
    line: "{{{{ word }}}}"
  - command: long
    argv: ["true"]
    env: {{V: "{{{{ word }}}}{long}"}}
"""


def told(place: Path, word: str, mode: str) -> list[dict[str, Any]]:
    """Return the reports of plan, apply and verify, and the saved plan without its checksum."""
    text = PLAYBOOK.format(place=place / "host", long=LONG, large="y" * 5000, mode=mode)
    (place / "site.yml").write_text(text)
    (place / "host/gone").write_text(word)
    env = {"STATECFG_STORE": str(place / "store.db"), "STATECFG_STATE_DIR": str(place / "state")}
    found = []
    (place / "p.plan").unlink(missing_ok=True)
    for words in (("plan", "--out", "p.plan"), ("apply", "--yes"), ("verify",)):
        code = None if words[0] == "verify" else 0
        ran = statecfg(*words, "site.yml", "--json", cwd=place, code=code, STATECFG_TEST_WORD=word, **env)
        found.append(json.loads(ran.out))
    plan = json.loads((place / "p.plan").read_bytes())
    del plan["sha256"]  # the digest of the whole plan, which contains random salts
    return [*found, plan]


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        own = ("run", "duration", "seconds", "ledger", "facts", "round_trips", "peer", "started", "made", "saved")
        slow = ("salt", "secrets", "inventory", "checksum", "created", "id")
        return {key: shape(item) for key, item in value.items() if key not in own + slow}
    return [shape(item) for item in value] if isinstance(value, list) else value


def test_reports_and_saved_plans_do_not_depend_on_secret_values(tmp_path: Path) -> None:
    known = []
    (tmp_path / "statecfg.toml").write_text('name = "digests"\n')
    for word in VALUES:
        host = tmp_path / "host"
        host.mkdir()
        (host / "lines").touch()
        said = told(tmp_path, word, "0600") + told(tmp_path, word, "0640")
        text = json.dumps(said)
        for guess in (word, word + "\n", word + LONG, word + "y" * 5000):
            assert hashlib.sha256(guess.encode()).hexdigest()[:16] not in text
        assert said[0]["hosts"]["@local"]["fingerprints"].keys() >= {f"file:{host}/whole", f"line_in_file:{host}/lines"}
        known.append(shape(said))
        for each in host.iterdir():
            each.unlink()
        host.rmdir()
        for each in ("state", "store.db"):
            (tmp_path / each).rename(tmp_path / f"{each}-{word}")
    for one, two in zip(*known, strict=True):
        assert one == two


def test_differences_never_show_short_lines_of_a_secret(tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").write_text('name = "short"\n')
    (tmp_path / "host").mkdir()
    (tmp_path / "host/pins").write_text("# pins\nqx1\nqy2\nqw9\n")
    for content in ("# pins\n{{ word }}", "# none\n"):  # the secret is added, then removed again
        text = PLAYBOOK.partition("  - file")[0].format() + "  - file: %s/host/pins\n    content: %s\n"
        (tmp_path / "site.yml").write_text(text % (tmp_path, json.dumps(content)))
        env = {"STATECFG_STORE": str(tmp_path / "store.db"), "STATECFG_STATE_DIR": str(tmp_path / "state")}
        env["STATECFG_TEST_WORD"] = "qx1\nqy2\nqz3\n"
        for words in ("plan --diff", "plan --json", "apply --yes --diff"):
            verb, *more = words.split()
            ran = statecfg(verb, "site.yml", *more, cwd=tmp_path, **env)
            assert not [line for line in ("qx1", "qy2", "qz3", "qw9") if line in ran.out + ran.err], ran.out


def test_files_that_held_a_secret_show_no_difference(tmp_path: Path) -> None:
    """The playbook no longer names the secret, so its value can't be masked."""
    (tmp_path / "statecfg.toml").write_text('name = "former"\n')
    (tmp_path / "host").mkdir()
    (tmp_path / "host/lines").touch()
    env = {"STATECFG_STORE": str(tmp_path / "store.db"), "STATECFG_STATE_DIR": str(tmp_path / "state")}
    text = PLAYBOOK.format(place=tmp_path / "host", long="", large="", mode="0600").partition("  - command")[0]
    (tmp_path / "site.yml").write_text(text)
    statecfg("apply", "site.yml", "--yes", cwd=tmp_path, STATECFG_TEST_WORD=VALUES[0], **env)
    (tmp_path / "site.yml").write_text(text.replace("{{ word }}", "none").replace("vars", "#"))
    for words in ("plan --diff", "plan --json", "apply --yes --diff"):
        verb, *more = words.split()
        ran = statecfg(verb, "site.yml", *more, cwd=tmp_path, **env)
        said = ran.out + ran.err
        assert VALUES[0] not in said and hashlib.sha256(VALUES[0].encode()).hexdigest() not in said, said
        assert "not shown: it may contain a secret" in said
    assert (tmp_path / "host/whole").read_text() == "none"
