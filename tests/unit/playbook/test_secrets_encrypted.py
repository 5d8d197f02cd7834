"""Encrypted secrets: they are opened when they are needed, once, and no message contains their values."""

from __future__ import annotations

import hashlib
import hmac
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from statecfg import dialects, templates
from statecfg.graph.opaque import mask_secrets
from statecfg.playbook import ansible_vault, project, secret_keys, secret_programs, secrets, user_code
from statecfg.playbook.secret_keys import Keys, Opened, Ring, SecretFailure
from statecfg.problems import InvalidInput, collecting
from statecfg.problems.positions import SourceLocation
from statecfg.problems.tokens import shown
from tests.each import each

RECORDED = yaml.safe_load((Path(__file__).parent / "ansible_vault.yml").read_text())
BY_CASE = {case["case"]: case for case in RECORDED}
FILE, LABELLED, VALUE = (BY_CASE[name] for name in ("a file", "a file with a label", "a value"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a directory with encrypted files and with the files of their passwords."""
    (tmp_path / "secrets.yml").write_text(FILE["text"])
    (tmp_path / "prod.txt").write_text(LABELLED["text"])
    for name, password in (("right", FILE["password"]), ("prod", LABELLED["password"]), ("wrong", "wrong-password")):
        (tmp_path / name).write_text(f"{password}\n")
        (tmp_path / name).chmod(0o600)
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the questions that were asked. The user enters the password of the recorded texts."""
    questions: list[str] = []

    def answer(question: str) -> secrets.Secret:
        questions.append(question)
        return secrets.Secret("password", FILE["password"] if "prod" not in question else LABELLED["password"])

    monkeypatch.setattr(secret_keys, "_ask", answer)
    return questions


def declared(place: Path, tag: str = "!secret", **value: Any) -> secrets.Secret:
    return secrets.tagged(tag, value.get("text", value), SourceLocation(str(place / "x.yml"), 3, 5), "hinted")


def encrypted(plain: str) -> str:
    """Return a text in the format of Ansible Vault."""
    made = hashlib.pbkdf2_hmac("sha256", FILE["password"].encode(), b"salt", ansible_vault.ROUNDS, 80)
    padder = padding.PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES(made[:32]), modes.CTR(made[64:80])).encryptor()
    data = encryptor.update(padder.update(plain.encode("utf-8", "surrogateescape")) + padder.finalize())
    parts = (b"salt", hmac.digest(made[32:64], data, "sha256"), data)
    lines = b"\n".join(part.hex().encode() for part in parts)
    return f"$ANSIBLE_VAULT;1.1;AES256\n{lines.hex()}\n"


def keys(place: Path, *vault_ids: str) -> Keys:
    return Keys.of(vault_ids, (), place)


@each("case", RECORDED, ids=lambda case: case["case"])
def test_what_ansible_vault_encrypted_is_opened(case: dict[str, str]) -> None:
    sealed = ansible_vault.parse(case["text"])
    assert isinstance(sealed, ansible_vault.Sealed) and sealed.label == case["label"]
    opened = ansible_vault._decrypted(sealed, secrets.Secret("password", case["password"]))
    assert opened is not None and opened.data.decode() == case["plain"]
    assert ansible_vault._decrypted(sealed, secrets.Secret("password", "wrong-password")) is None
    damaged = sealed._replace(data=sealed.data[:-1] + bytes([sealed.data[-1] ^ 1]))
    assert ansible_vault._decrypted(damaged, secrets.Secret("password", case["password"])) is None


def test_secret_is_asked_for_once_and_only_when_needed(place: Path, asked: list[str]) -> None:
    with secret_keys.opening(Keys()):
        first = declared(place, vault="secrets.yml", key="db.password")
        second = declared(place, vault="secrets.yml", key="db.pin")
        third = declared(place, tag="!vault", text=VALUE["text"])
        other = declared(place, vault="prod.txt")
    text = templates.evaluate("password = {{ it }}", {"it": first}, SourceLocation("x", 1))  # needs no value yet
    assert asked == [] and repr(first) == shown("db.password") and mask_secrets("vault-secret-1") == "vault-secret-1"
    assert (first.reveal(), second.reveal(), third.reveal()) == ("vault-secret-1", "0123", VALUE["plain"])
    assert asked == ["vault password"]
    assert (other.name, other.reveal()) == ("prod", "line one\nline two")
    assert asked == ["vault password", "vault password for prod"]
    assert templates.render_text("{{ text }}", {"text": text}, SourceLocation("x", 1)) == "password = vault-secret-1"
    assert mask_secrets("its vault-secret-1 is") == "its <secret db.password> is"


@pytest.mark.parametrize(
    ("vault_ids", "questions"),
    [
        (["right", "prod@prod"], []),
        (["prod@prod", "wrong", "right"], []),
        (["right"], ["vault password for prod"]),
        (["right", "prod"], ["vault password for prod"]),
        (["default@prompt", "prod@prompt"], ["vault password", "vault password for prod"]),
        (["wrong@right", "prod@prod"], []),
    ],
)
def test_password_of_the_label_comes_first(
    place: Path, asked: list[str], vault_ids: list[str], questions: list[str]
) -> None:
    with secret_keys.opening(keys(place, *vault_ids)):
        found = [declared(place, vault=name) for name in ("secrets.yml", "prod.txt")]
    assert [secret.reveal().rstrip("\n") for secret in found] == [FILE["plain"].rstrip("\n"), "line one\nline two"]
    wanted = questions if vault_ids != ["right", "prod"] else []  # a password without a label is tried, too
    assert asked == wanted


def test_validation_opens_and_runs_nothing(place: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_programs, "output", lambda *arguments: pytest.fail("a program ran"))
    (place / "sops.yml").write_text("x: 1\n")
    with secrets.placeholders() as missing:
        found = [
            declared(place, vault="secrets.yml", key="db.password"),
            declared(place, tag="!vault", text=VALUE["text"]),
            declared(place, sops="sops.yml", name="here"),
            declared(place, sops="not-there.yml"),
            declared(place, command=["sh", "-c", "exit 1"]),
            declared(place, command=["no-such-program-anywhere", "shop/db"]),
            declared(place, command=["./not-there"], name="mine"),
        ]
    assert [secret.available for secret in found] == [False] * 7 and asked == []
    assert [secret.name for secret in found[:5]] == ["db.password", "hinted", "here", "not-there", "hinted"]
    assert list(missing) == ["not-there", "hinted", "mine"]


@each(
    ("given", "words", "help_words"),
    [
        ({"vault": "missing.yml"}, "missing.yml can't be read: No such file", "check the path"),
        ({"vault": "plain.yml"}, "plain.yml is not encrypted by Ansible Vault", "ansible-vault encrypt"),
        ({"vault": "cut.yml"}, "cut.yml is damaged", "ansible-vault"),
        ({"vault": "old.yml"}, "old.yml has the unknown format `1.0;AES`", "again"),
        ({"vault": "$ANSIBLE_VAULT;1.1;AES256\nzz"}, "the encrypted text is damaged", "encrypt_string"),
        ({"vault": "secrets.yml", "key": "db.pasword"}, "has no key `pasword` in `db`", "key: NAME.NAME"),
        ({"vault": "secrets.yml", "key": "db"}, "`db` in", "key: NAME.NAME"),
        ({"vault": "secrets.yml", "key": "db.users.7"}, "has no key `7` in `db.users`", "key: NAME.NAME"),
        ({"vault": "prod.txt", "key": "db.password"}, "has no key `db`", "key: NAME.NAME"),
        ({"vault": "broken.txt", "key": "a"}, "decrypted, is not YAML at line 2", "remove `key:`"),
        ({"vault": "short.txt"}, "has 3 characters", "longer"),
        ({"vault": "latin.txt"}, "latin.txt is not UTF-8 text at byte offset 3", "UTF-8"),
        ({"age": "plain.yml"}, "plain.yml is not encrypted by age", "age"),
        ({"age": "-----BEGIN AGE ENCRYPTED FILE-----\nzz\n"}, "the encrypted text is damaged", "age"),
    ],
)
def test_problem_names_the_file_and_the_cause_but_no_value(
    place: Path, given: dict[str, Any], words: str, help_words: str
) -> None:
    (place / "plain.yml").write_text("password: canary-value\n")
    (place / "cut.yml").write_text(FILE["text"][:-40])
    (place / "old.yml").write_text("$ANSIBLE_VAULT;1.0;AES\n00\n")
    (place / "broken.txt").write_text(encrypted("a: 1\nb: [canary-value"))
    (place / "short.txt").write_text(encrypted("abc\n"))
    (place / "latin.txt").write_text(encrypted("caf\udce9 canary"))
    with secret_keys.opening(keys(place, "right", "prod@prod")), collecting() as problems:
        secret = declared(place, **given)
        for _ in range(2):  # each use reports the problem, because the first one could be in a trial
            assert "canary" not in f"{secret.reveal()}"
        assert not secret.available
    (found,) = problems
    assert words in found.detail and help_words in found.help and found.locations[0].line == 3
    assert "canary" not in str(found) and "vault-secret" not in str(found)


def test_wrong_password_is_reported_without_it(place: Path) -> None:
    with secret_keys.opening(keys(place, "wrong", "prod@wrong")), collecting() as problems:
        declared(place, vault="secrets.yml").reveal()
        declared(place, tag="!vault", text=BY_CASE["a value with a label"]["text"]).reveal()
    assert [item.code for item in problems] == ["SC0420", "SC0420"]
    assert problems[0].detail.endswith("secrets.yml: can't be opened: none of the 2 vault passwords is right")
    assert problems[1].detail.endswith("none of the 2 vault passwords is right (its label is `prod`)")
    assert all("wrong-password" not in str(item) and "--vault-id" in item.help for item in problems)


def test_password_file_must_be_private_and_not_empty(place: Path) -> None:
    (place / "wrong").chmod(0o644)
    (place / "prod").write_text("\n")
    (place / "right").write_bytes(b"caf\xe9\n")
    for vault_id, words in (
        ("wrong", "wrong can be read by everyone (mode 0644)"),
        ("prod", "prod is empty"),
        ("right", "right is not UTF-8 text"),
        ("nothing", "nothing can't be read: No such file or directory"),
        (".", " is not a regular file"),
    ):
        with secret_keys.opening(keys(place, vault_id)), collecting() as problems:
            declared(place, vault="secrets.yml").reveal()
        assert words in problems[0].detail


def test_missing_terminal_is_reported(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with secret_keys.opening(Keys()), collecting() as problems:
        declared(place, vault="secrets.yml").reveal()
    assert "can't ask for the vault password: stdin is not a terminal" in problems[0].detail
    assert "--vault-id" in problems[0].help


def test_no_traceback_contains_a_value(place: Path) -> None:
    """Neither the plain text nor the password is in the local variables of any frame."""
    (place / "bad.yml").write_text(FILE["text"])
    with secret_keys.opening(keys(place, "right")):
        secret = declared(place, vault="secrets.yml", key="db.users")
    try:
        secret.reveal()
    except InvalidInput as error:
        shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "`db.users`" in shown
    assert "vault-secret-1" not in shown and FILE["password"] not in shown and "ann-lee" not in shown


@each(
    ("given", "words"),
    [
        ({"vault": "a", "age": "b"}, "one source"),
        ({"command": "pass show x"}, "one source"),
        ({"command": []}, "one source"),
        ({"command": ["x", 1]}, "one source"),
        ({"sops": ["a"]}, "one source"),
        ({"vault": "secrets.yml", "name": ["x"]}, "one source"),
        ({"vault": "secrets.yml", "key": 7}, "`key` is not valid"),
        ({"vault": "secrets.yml", "key": "a..b"}, "`key` is not valid"),
        ({"env": "HOME", "key": "a"}, "`key` is not valid"),
        ({"vualt": "secrets.yml"}, "no key `vualt`"),
        ({"age": "a\0b"}, "one source"),
        ({"command": ["x", "a\0b"]}, "one source"),
        ({"command": ["x", f"--password={secrets.Secret('inner', 'canary-1')}"]}, "one source"),
        ({"vault": f"{secrets.Secret('inner', 'canary-2')}.yml"}, "one source"),
    ],
)
def test_wrong_declarations_are_refused(place: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        declared(place, **given)
    assert [item.code for item in caught.value.problems] == ["SC0422"]
    assert words in caught.value.problems[0].detail
    with pytest.raises(InvalidInput, match="begins with"):
        declared(place, tag="!vault", text="no vault")


def test_secret_function_takes_every_source(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def output(argv: list[str], directory: str, environ: dict[str, str]) -> Opened | SecretFailure:
        ran.append((argv, directory))
        return Opened(b'{"db": {"password": "from-sops", "port": 54321}}' if argv[0] == "sops" else b"from-pass\n")

    monkeypatch.setattr(secret_programs, "output", output)
    here = Path(__file__).parent
    with secret_keys.opening(keys(place, "right", "prod@prod")):
        found = [
            secrets.secret("a", vault=place / "secrets.yml", key=("db", "users", "1")),
            secrets.secret("b", vault=VALUE["text"]),
            secrets.secret("c", sops="ansible_vault.yml", key="db.password"),
            secrets.secret("d", sops="ansible_vault.yml", key=["db", "port"]),
            secrets.secret("e", command=["pass", "show", "shop/db"]),
        ]
    assert [secret.reveal() for secret in found] == ["bob-ray", VALUE["plain"], "from-sops", "54321", "from-pass"]
    sops = (["sops", "--decrypt", "--output-type", "json", str(here / "ansible_vault.yml")], str(here))
    assert ran == [sops, (["pass", "show", "shop/db"], str(here))]
    with pytest.raises(InvalidInput, match="requires one of"):
        secrets.secret("x", env="A", vault="b")


def test_program_of_a_file_that_others_can_change_is_not_run(place: Path) -> None:
    (place / "x.yml").touch()
    (place / "x.yml").chmod(0o666)
    with secret_keys.opening(Keys()), collecting() as problems:
        declared(place, command=["printf", "canary"], name="it").reveal()
    assert "has mode 0666" in problems[0].detail and "does not run a program" in problems[0].detail


def test_program_that_others_can_change_is_not_run(place: Path) -> None:
    (place / "x.yml").touch()
    (place / "printer").write_text("#!/bin/sh\necho canary\n")
    (place / "printer").chmod(0o777)
    with secret_keys.opening(Keys()), collecting() as problems:
        declared(place, command=["./printer"], name="it").reveal()
    assert "printer has mode 0777" in problems[0].detail and "does not run it" in problems[0].detail


def test_program_gets_no_variable_that_is_a_secret(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environs: dict[str, dict[str, str]] = {}

    def output(argv: list[str], directory: str, environ: dict[str, str]) -> Opened | SecretFailure:
        environs[argv[0].rpartition("/")[2]] = environ
        return Opened(b"from-it")

    monkeypatch.setattr(secret_programs, "output", output)
    monkeypatch.setenv("DB_PASSWORD", "from-variable")
    monkeypatch.setenv("STATECFG_STORE", "postgresql://app:from-store@db/statecfg")
    monkeypatch.setenv("OTHER", "other")
    (place / "client").touch(mode=0o700)
    with secret_keys.opening(keys(place, "client")), collecting():
        declared(place, env="DB_PASSWORD")
        declared(place, command=["pass", "show", "x"]).reveal()
        declared(place, vault="secrets.yml").reveal()
        declared(place, sops="secrets.yml").reveal()
    assert {name: ("DB_PASSWORD" in environ, environ["OTHER"]) for name, environ in environs.items()} == {
        "pass": (False, "other"),
        "client": (False, "other"),
        "sops": (True, "other"),
    }
    assert not any("STATECFG_STORE" in environ for environ in environs.values())


def test_label_with_control_characters_is_refused() -> None:
    found = ansible_vault.parse("$ANSIBLE_VAULT;1.2;AES256;prod\x1b[2J\n00\n")
    assert isinstance(found, SecretFailure) and "control character" in found.detail


def test_inventory_takes_values_of_ansible_vault(place: Path) -> None:
    text = "".join(f"          {line}\n" for line in VALUE["text"].splitlines())
    (place / "inventory.yml").write_text(f"hosts:\n  web1:\n    vars:\n      token: !vault |\n{text}")
    owner = project.find(place)
    assert repr(dialects.inventory(owner).hosts["web1"].vars["token"]) == shown("token")
    with secret_keys.opening(keys(place, "right")):
        token = dialects.inventory(owner, secrets=True).hosts["web1"].vars["token"]
    assert (repr(token), token.reveal()) == (shown("token"), VALUE["plain"])


def test_settings_name_the_keys(tmp_path: Path) -> None:
    settings = tmp_path / "statecfg.toml"
    settings.write_text('vault_ids = ["a@sub/p", "~/q", "prod@prompt"]\nage_identities = ["k"]\n')
    found = project.read_settings(settings).keys
    made = Keys.of(found.vault_ids, found.age_identities, tmp_path)
    assert made.vault_ids[0] == ("a", str(tmp_path / "sub/p")) and made.vault_ids[2] == ("prod", "prompt")
    assert made.vault_ids[1] == ("default", str(Path("~/q").expanduser())) and made.age_identities == (f"{tmp_path}/k",)
    for wrong in ('vault_ids = "a"', "vault_ids = [1]", 'vault_ids = ["prod@"]', 'age_identities = [""]'):
        settings.write_text(wrong)
        with pytest.raises(InvalidInput, match="a list of"):
            project.read_settings(settings)


def test_ring_remembers_each_result_once() -> None:
    ring, calls = Ring(), []
    assert [ring.once("a", lambda: calls.append(1) or len(calls)) for _ in range(3)] == [1, 1, 1]


def test_message_of_a_failed_program_contains_no_secret() -> None:
    secrets.Secret("known", "known-value")
    said = secret_programs._message(b"\n| known-value\n  and canary-9 are wrong\n", b"canary-9\n")
    assert said == ": <secret known> and … are wrong"
    said = secret_programs._message(b"in canary-9 of entry\n", b"password: canary-9\n")
    assert said == ": in … of entry"
    assert secret_programs._message(b"", b"canary-9\n") == ""
    assert len(secret_programs._message(b"x" * 9999, b"")) == secret_programs.LONGEST + 2


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_report_of_a_mistake_reads_no_secret(place: Path, asked: list[str]) -> None:
    from statecfg.views.problems import source_line

    with secret_keys.opening(Keys()):
        secret = declared(place, vault=encrypted("not-read-yet"))
    (place / "x.yml").write_text("a: not-read-yet\n")
    assert source_line(place / "x.yml", 1) == "a: not-read-yet" and asked == []
    assert secret.reveal() == "not-read-yet"
    assert source_line(place / "x.yml", 1) == "a: ************"


def test_time_for_an_answer_does_not_count_against_the_code_of_users() -> None:
    with user_code.guarded("loading", 0.05), user_code.waiting():
        spin(0.2)
    with pytest.raises(InvalidInput, match=r"took more than 0.05 seconds"), user_code.guarded("loading", 0.05):
        with user_code.waiting():
            spin(0.1)
        spin(9)
