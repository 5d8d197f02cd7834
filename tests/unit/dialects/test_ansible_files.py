"""Which files are Ansible inventories, which of their files of variables count, and who becomes whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecfg.dialects import inventories
from statecfg.playbook import secrets
from tests.each import each
from tests.unit.dialects.test_inventories import refused, write


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_encrypted_file_of_variables_is_an_error_only_if_secrets_are_needed():
    write(
        hosts_ini="w1\n",
        group_vars__all__vault_yml="$ANSIBLE_VAULT;1.1;AES256\n3132\n",
        group_vars__all__vars_yml="a: 1\n",
        own_yml="hosts: {w2: {vars_files: secret.yml}}\n",
        secret_yml="$ANSIBLE_VAULT;1.1;AES256\n3132\n",
    )
    for path, file in (("hosts.ini", "group_vars/all/vault.yml"), ("own.yml", "secret.yml")):
        assert any(item.startswith(f"SC0420 {file}:1 secret `{file}`: Ansible Vault") for item in refused(path))
    with secrets.placeholders() as missing:
        assert dict(inventories.load("hosts.ini").hosts["w1"].vars) == {"a": 1}
    assert list(missing) == ["group_vars/all/vault.yml"]


@each(
    "text",
    [
        "---\nall: {hosts: {w1: }}\n",
        "# all\n\nweb:\n  hosts: {w1: }\n",
        "hosts: {w1: }\n",
        '{"all": {"hosts": {"w1": {}}}}',
    ],
)
def test_yaml_needs_no_ending(text):
    for name in ("hosts", "site.inventory"):
        Path(name).write_text(text)
        assert list(inventories.load(name).hosts) == ["w1"]


def test_ini_can_have_the_ending_of_yaml():
    Path("x.yml").write_text("# one\n[web:vars]\na=1\n[web]\nw1\n")
    assert dict(inventories.load("x.yml").hosts["w1"].vars) == {"a": 1}


def test_a_directory_counts_with_its_last_source():
    write(
        all_yml="sources: [a/one.ini, b/hosts.ini, a/two.ini]\n",
        a__one_ini="w1\n",
        a__two_ini="w2\n",
        b__hosts_ini="w1\n",
        a__group_vars__all_yml="x: a\n",
        b__group_vars__all_yml="{x: b, y: b}\n",
    )
    assert dict(inventories.load("all.yml").hosts["w1"].vars) == {"x": "a", "y": "b"}


def test_variables_of_the_method_of_become_win():
    write(
        x_ini="""            w1 ansible_become_user=a ansible_sudo_user=b ansible_su_user=c
            w2 ansible_become_user=a ansible_sudo_user=b ansible_su_user=c ansible_become_method=su
            [all:vars]
            ansible_become=yes
            ansible_sudo=yes
            ansible_become_password=weak-1
            ansible_become_pass=weak-2
            """
    )
    logins = {name: host.login for name, host in inventories.load("x.ini").hosts.items()}
    assert {name: (login.become, login.become_user) for name, login in logins.items()} == {
        "w1": ("sudo", "b"), "w2": ("su", "c"),
    }  # fmt: skip
    assert logins["w1"].become_password.reveal() == "weak-2"
