"""Inventories of several sources, variables from files, functions in Python, and mistakes in Ansible's formats."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from statecfg.dialects import inventories
from statecfg.dialects.inventories import ini, ranges, ssh_options
from statecfg.playbook import secrets
from statecfg.problems import InvalidInput
from statecfg.problems.tokens import shown
from tests.each import each


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**files: str) -> None:
    """Write files; `__` in a name stands for `/`, and the first `_` before the ending for a dot."""
    for name, text in files.items():
        path = Path(name.replace("__", "/"))
        path = path.with_name(".".join(path.name.rsplit("_", 1)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def refused(path: str = "inventory.yml") -> list[str]:
    """Return the problems of an inventory: code, places, detail and help."""
    with pytest.raises(InvalidInput) as caught:
        inventories.load(path)
    return [
        f"{item.code} {' '.join(map(str, item.locations))} {item.detail} ({item.help})"
        for item in caught.value.problems
    ]


def test_variables_come_from_files_of_hosts_groups_and_environments():
    write(
        inventory_yml="""\
            hosts:
              web1: {vars: {port: 1}, vars_files: more.yml}
              web2:
            groups:
              all: {vars_files: [common.yml, environments/prod.yml]}
              web: {hosts: [web1, web2]}
            """,
        more_yml="port: 2\nsize: large\n",
        common_yml="env: none\ncommon: true\n",
        environments__prod_yml="env: prod\n",
        host_vars__web2_yml="port: 3\n",
        group_vars__web__a_yml="tls: true\n",
        group_vars__web__b_yml="domain: example.org\n",
        group_vars__unused_yml="not: [read\n",
    )
    known = inventories.load("inventory.yml")
    web = {"env": "prod", "common": True, "tls": True, "domain": "example.org"}
    assert dict(known.hosts["web1"].vars) == {**web, "port": 1, "size": "large"}
    assert dict(known.hosts["web2"].vars) == {**web, "port": 3}
    assert str(known.who_won("web2")["tls"][1]) == "group_vars/web/a.yml:1:6"


def test_files_of_variables_have_the_rules_of_inventories():
    write(
        inventory_yml="hosts: {web1: {vars: {port: 1}, vars_files: [nosuch.yml]}}\n",
        host_vars__web1_yml="port: 2\nmode: 0644\nhost: x\ntoken: !secret {env: STATECFG_NO_SUCH}\n",
    )
    found = refused()
    assert [item.split()[0] for item in found] == ["SC0309", "SC0301"]
    write(host_vars__web1_yml="port: 2\nhost: x\ntoken: !secret {env: STATECFG_NO_SUCH}\n", nosuch_yml="a: 1\n")
    found = refused()
    assert sorted(item.split()[0] for item in found) == ["SC0308", "SC0409", "SC0420"]
    assert any("host_vars/web1.yml:1:7" in item and "inventory.yml:1:" in item for item in found)


def test_an_inventory_merges_the_hosts_groups_and_variables_of_its_sources():
    write(
        inventory_yml="""\
            sources: [hosts.ini, more.yml, cloud.json]
            hosts:
              web1: {port: 2222, vars: {size: 2}}
            groups:
              eu: {hosts: [web1, db1, c1], vars: {zone: eu}}
            """,
        hosts_ini="[web]\nweb1 ansible_host=192.0.2.1 ansible_user=deploy\n[web:vars]\nsize=1\nport=80\n",
        more_yml="hosts: {db1: {user: ops}}\ngroups: {db: {hosts: [db1]}}\n",
        cloud_json='{"cloud": {"hosts": ["c1"]}, "_meta": {"hostvars": {"c1": {"id": 7}}}}',
        group_vars__web_yml="port: 81\n",
    )
    known = inventories.load("inventory.yml")
    assert {name: host.groups for name, host in known.hosts.items()} == {
        "web1": ("eu", "web"), "db1": ("db", "eu"), "c1": ("cloud", "eu"),
    }  # fmt: skip
    web1 = known.hosts["web1"]
    assert (web1.address, web1.port, web1.login.user) == ("192.0.2.1", 2222, "deploy")
    assert {"size": 2, "port": 81, "zone": "eu"}.items() <= web1.vars.items()


def test_files_beside_an_inventory_belong_to_an_ansible_source_there_or_to_all_hosts():
    write(
        inventory_yml="sources: [hosts.ini]\nhosts: {own1: }\ngroups: {web: {}, own: {hosts: [own1]}}\n",
        hosts_ini="[web]\nweb1\n",
        group_vars__web_yml="tls: yes\ndb_password: secret-text\n",
        group_vars__own_yml="tls: false\n",
    )
    known = inventories.load("inventory.yml")
    assert known.hosts["web1"].vars["tls"] is True and known.hosts["own1"].vars["tls"] is False
    write(plain_yml="hosts: {own1: }\n", group_vars__all_yml="zone: eu\n")
    assert dict(inventories.load("plain.yml").hosts["own1"].vars) == {"zone": "eu"}


def test_sources_that_cannot_be_read_are_errors():
    write(inventory_yml="sources: [hots.ini, below]\n", hosts_ini="w1\n", below__x_yml="")
    found = refused()
    assert any(item.startswith("SC0301 inventory.yml:1:11") and "did you mean `hosts.ini`?" in item for item in found)
    assert any(item.startswith("SC0303 below/x.yml:1") for item in found)


def test_a_list_of_hosts_is_not_an_inventory():
    assert refused("w1,w2") == [
        "SC0301 w1,w2:1 w1,w2: No such file or directory (write the hosts into a file, one in each line)"
    ]


def test_sources_that_disagree_are_refused_with_both_places():
    write(
        inventory_yml="""\
            sources: [hosts.ini, hosts.ini, nosuch.ini]
            hosts: {web1: {user: ops, vars: {size: 2}}}
            groups: {eu: {hosts: [web1], vars: {zone: eu, size: 3}}, web: {vars: {port: 1}}}
            """,
        hosts_ini="[web]\nweb1 ansible_user=deploy size=1\n[web:vars]\nzone=us\n",
    )
    found = refused()
    codes = sorted(item.split()[0] for item in found)
    assert codes == ["SC0301", "SC0408", "SC0409", "SC0409", "SC0417"]
    assert any("`zone` of host `web1` differs between an Ansible source and groups `eu`" in item for item in found)
    assert any("`user` of host `web1`" in item or "'ops'" in item for item in found)


def test_a_directory_is_read_like_in_ansible():
    write(
        prod__a_ini="[web]\nw1\n",
        prod__b_yml="web: {vars: {port: 80}}\n",
        prod__notes_md="# not an inventory [\n",
        prod__group_vars__web_yml="tls: yes\n",
    )
    assert dict(inventories.load("prod").hosts["w1"].vars) == {"port": 80, "tls": True}


def test_a_function_in_python_returns_an_inventory(monkeypatch):
    monkeypatch.setenv("STATECFG_TEST_TOKEN", "long enough")
    write(
        machines_py="""\
            from statecfg import secret

            def inventory():
                names = [f"web{n}" for n in range(1, 3)]
                hosts = {name: {"vars": {"token": secret("t", env="STATECFG_TEST_TOKEN")}} for name in names}
                return {"hosts": hosts, "groups": {"web": {"hosts": names, "vars": {"port": 80}}}}
            """
    )
    known = inventories.load("machines.py")
    assert [host.name for host in known.select("web")] == ["web1", "web2"]
    assert isinstance(known.hosts["web1"].vars["token"], secrets.Secret)


@each(
    ("code", "expected"),
    [
        ("x = 1\n", "SC0417 m.py:1 m.py defines no function `inventory`"),
        ("def inventory():\n    return 7\n", "SC0310 m.py:1:1 an inventory must be a map"),
        ("def inventory():\n    return {'hosts': {'a b': {}}}\n", "SC0401 m.py:1:1"),
        ("def inventory():\n    return {'hosts': {'a': {'vars': {'x': object()}}}}\n", "SC0417 m.py:1:1"),
        ("def inventory():\n    return 1 / 0\n", "SC0504 m.py:2"),
        ("def inventory(:\n", "SC0501 m.py:1"),
    ],
)
def test_mistakes_in_python_functions_have_their_place(code, expected):
    write(m_py=code)
    (found,) = refused("m.py")
    assert found.startswith(expected)


INI = [
    ("[web\nw1\n", "SC0414 x.ini:1:1"),
    ("[we b]\nw1\n", "SC0414 x.ini:1:1 `[we b]` is not a section"),
    ("[web:child]\nw1\n", "SC0414 x.ini:1:1 unknown kind of section `child`"),
    ("[web]\nw1 port\n", "SC0414 x.ini:2:4 `port` is not a variable"),
    (
        "a=b\n[web]\nw1\n",
        "SC0414 x.ini:1:1 the line sets `a` outside of a section for variables (write variables",
    ),
    ("[web]\nw1 a = b\n", "SC0414 x.ini:2:6 a name is missing before the `=` (write NAME=VALUE without spaces"),
    ("[web]\nw1 a='b\n", "SC0414 x.ini:2:1 No closing quotation"),
    ("[web:vars]\nport 80\n[web]\n", "SC0414 x.ini:2:1 `port` has no value (write NAME=VALUE)"),
    ("[web:children]\ndb a=1\n[db]\n", "SC0414 x.ini:2:1 the line that begins with `db` is not a group"),
    ("w[1:99999999]\n", "SC0414 x.ini:1:1"),
    ("w[3:1]\n", "SC0414 x.ini:1:1 `w[3:1]`: the range [3:1] ends before it begins"),
    ("w1:\n", "SC0414 x.ini:1:1"),
    ("w1:99999\n", "SC0414 x.ini:1:1"),
    ("---\nall:\n", "SC0414 x.ini:1:1"),
    ("w1 a-b=1\n", "SC0308 x.ini:1:4"),
    ("w1 host=1\n", "SC0308 x.ini:1:4"),
    ("w1 x='{{ y }}'\n", "SC0415 x.ini:1:4 `x` contains a template"),
    ("w1 x='a {# y #}'\n", "SC0415 x.ini:1:4 `x` contains a template"),
    ("$ANSIBLE_VAULT;1.1;AES256\n31\n", "SC0417 x.ini:1 x.ini: Ansible Vault encrypted the inventory itself"),
    ("[a:children]\nall\n", "SC0402 x.ini:2:1 a → all → a"),
    ("[a:children]\nb\n[b:children]\na\n", "SC0402 x.ini:"),
    ("w1 ansible_port=ssh\n", "SC0405 x.ini:1:4 `ansible_port` is 'ssh'"),
    ("w1 ansible_connection=winrm\n", "SC0405 x.ini:1:4 `ansible_connection` is 'winrm'"),
    ("w1 ansible_connection=locl\n", "did you mean `local`?"),
    ("w1 ansible_host='-oProxyCommand=x'\n", "SC0405 x.ini:1:4"),
    ("w1 ansible_user='a;b'\n", "SC0405 x.ini:1:4"),
    ("w1 ansible_become=maybe\n", "SC0405 x.ini:1:4"),
    ("w1 ansible_become=1 ansible_become_method=pbrun\n", "SC0405 x.ini:1:21"),
    ("w1 ansible_become_pass=abc\n", "SC0421 x.ini:1:4"),
    ("w1 ansible_python_interpreter=../python\n", "SC0405 x.ini:1:4"),
    ("w1 ansible_ssh_common_args='-o ProxyCommand=\"nc %h %p\"'\n", "can't run a ProxyCommand"),
    ("w1 ansible_ssh_common_args='-o LocalCommand=x'\n", "does not support ssh's option `localcommand`"),
    ("w1 ansible_ssh_common_args='-F cfg'\n", "--ssh-config FILE"),
    ("w1 ansible_ssh_common_args='-J \"a b\"'\n", "SC0405 x.ini:1:4"),
    ("#!/bin/sh\n", "SC0417 x.ini:1 x.ini is a program, and not executable (chmod +x x.ini)"),
]


@each(("text", "expected"), INI)
def test_mistakes_in_ini_have_their_place(text, expected):
    Path("x.ini").write_text(text)
    assert any(expected in item for item in refused("x.ini"))


YAML = [
    ("all: [w1]\n", "SC0310 x.yml:1:6"),
    ("all: {hosts: [w1]}\n", "SC0310 x.yml:1:14"),
    ("all: {hosts: {w1: 80}}\n", "SC0310 x.yml:1:19"),
    ("all: {host: {w1: }}\n", "SC0311 x.yml:1:7 group `all` has no key `host` (did you mean `hosts`?"),
    ("all: {hosts: {'w[1:': }, children: {'a b': }}\n", "SC0401 x.yml:1:37"),
    ("all: {vars: {a: !!python/name:os.system x}}\n", "SC0312 x.yml:1:17"),
    ("all: {vars: {a: [1, {b: '{{ c }}'}]}}\n", "SC0415 x.yml:1:25 `a` contains a template"),
    ("all: {vars: {a: 2024-13-45}}\n", "SC0315 x.yml:1:17"),
    ("all: {vars: {<<: 1}}\n", "SC0308 x.yml:1:18"),
    ("all: {vars: {a: &a [*a]}}\n", "SC0307 x.yml:1:21"),
    ("plugin: aws_ec2\nregions: [eu]\n", "SC0417 x.yml:1:1"),
    ("plugin: constructed\ngroups: {a: b == 1}\n", "SC0417 x.yml:1:1 x.yml configures an inventory plugin"),
    ("host: {web1: {}}\n", "SC0311 x.yml:1:1 an inventory has no key `host` (did you mean `hosts`?"),
    ("sources: [{comand: [x]}]\n", "SC0417 x.yml:1:11"),
    ("sources: [{command: x --list}]\n", "SC0310 x.yml:1:21"),
    ("sources: [{command: [x], timeout: 0}]\n", "SC0405 x.yml:1:35"),
    ("sources: [x.yml]\n", "SC0417 x.yml:1:11 x.yml:1 x.yml is a source of the inventory twice"),
    ("all: {vars: {a: !vault abc}}\n", "SC0422 x.yml:1:17 !vault requires a string that begins with $ANSIBLE_VAULT;"),
]


@each(("text", "expected"), YAML)
def test_mistakes_in_yaml_have_their_place(text, expected):
    Path("x.yml").write_text(text)
    assert any(expected in item for item in refused("x.yml")), refused("x.yml")


JSON = [
    ('{"web": 7, "_meta": {}}', "printed the number 7 as web"),
    ('{"web": {"hosts": "w1"}, "_meta": {}}', "as web.hosts"),
    ('{"web": {"host": ["w1"]}, "_meta": {}}', "has no key `host` (did you mean `hosts`?"),
    ('{"web": ["w1"], "_meta": {"hostvars": {"w1": {"a": ["{{ b }}"]}}}}', "x.json:1 `a` in the variables of w1"),
    ('{"web": ["w1"], "_meta": {"hostvars": {"w1": 1}}}', "as the variables of w1"),
    ('{"web": ["w1"], "_meta": {"hostvars": []}}', "as _meta.hostvars"),
]


@each(("text", "expected"), JSON)
def test_mistakes_in_json_have_their_place(text, expected):
    Path("x.json").write_text(text)
    assert any(expected in item for item in refused("x.json")), refused("x.json")


def test_all_mistakes_are_reported_at_once_and_vaults_only_if_needed():
    Path("x.ini").write_text("w1 port\nw1 a-b=1\n[x:vars]\ny='{{ z }}'\n")
    assert [item.split()[0] for item in refused("x.ini")] == ["SC0414", "SC0308", "SC0404", "SC0415"]
    vault = "$ANSIBLE_VAULT;1.1;AES256\\n36310a36320a3633\\n"
    Path("x.yml").write_text(f'all: {{hosts: {{w1: }}, vars: {{a: !vault "{vault}"}}}}\n')
    with secrets.placeholders() as missing:
        assert not inventories.load("x.yml").hosts["w1"].vars["a"].available
    assert list(missing) == [] and repr(inventories.load("x.yml").hosts["w1"].vars["a"]) == shown("a")


def test_a_line_with_a_password_is_shown_without_it():
    from statecfg.views.problems import source_line

    lines = {
        "w1 db_password='two words": "w1 db_password=**********",
        "w2 ansible_become_pass=abcdef xyz a=1": "w2 ansible_become_pass=********** a=1",
        "my_pass=xyz[1:2]": "my_pass=********",
        "w3 my_pass = xyz a=1": "w3 my_pass = *** a=1",
        "w3 my_pass xyz": "w3 my_pass ***",
        "[web:vars]": "[web:vars]",
        "my_pass xyz": "my_pass ***",
        "[web:children]": "[web:children]",
        "web my_pass=xyz": "web my_pass=***",
        "my_pass=xyz": "my_pass=***",
    }
    Path("x.ini").write_text("".join(f"{line}\n" for line in lines))
    same = ["password = {{ pasword }}", "  password: !secret {env: X}", "password: '{{ x }}'", "password_file: x"]
    Path("x.yml").write_text("\n".join([*same, "- db_password: xyz: 1", '"password": xyz']))
    shown = [source_line(Path("x.yml"), number) for number in range(1, 7)]
    assert shown == [*same, "- db_password: ******", '"password": ***']
    assert [source_line(Path("x.ini"), number) for number in range(1, 11)] == list(lines.values())
    assert not any("xyz" in item or "words" in item for item in refused("x.ini"))


@each(
    ("text", "jump"),
    [
        ("-J bastion", "bastion"),
        ("-Jops@bastion:22", "ops@bastion:22"),
        ("-o ProxyJump=a,b", "a,b"),
        ("-o 'ProxyJump a'", "a"),
        ('-o ProxyCommand="ssh -W %h:%p -q a"', "a"),
        ("-oProxyCommand='ssh -o StrictHostKeyChecking=no -l ops -p 2222 -W %h:%p a'", "ops@a:2222"),
        ("-o ProxyCommand=none", "none"),
        ("-o StrictHostKeyChecking=no -C -4 -o ControlPersist=60s", None),
    ],
)
def test_jump_hosts_come_from_arguments_of_ssh(text, jump):
    assert ssh_options.read(text).jump == jump


def test_other_arguments_of_ssh_become_settings():
    way = ssh_options.read("-i ~/.ssh/k -p 22 -l ops -o IdentityFile=/k2 -o Port=23")
    assert (way.keys, way.port, way.user) == (["~/.ssh/k", "/k2"], "23", "ops")


@each(
    ("pattern", "names"),
    [
        ("w1", ["w1"]),
        ("w[01:03]", ["w01", "w02", "w03"]),
        ("w[1:5:2]x[a:b]", ["w1xa", "w1xb", "w3xa", "w3xb", "w5xa", "w5xb"]),
        ("[1:2].example.org", ["1.example.org", "2.example.org"]),
        ("2001:db8::1", ["2001:db8::1"]),
    ],
)
def test_a_range_expands_to_its_names(pattern, names):
    assert ranges.expand(pattern) == (names, None)


@each("text", ["[1:2:0]", "[a:]", "[1:2:3:4]", "[x:12]", "[01:100]", "[1:300][1:400]", "[ab:cd]"])
def test_invalid_ranges_are_refused(text):
    with pytest.raises(ranges.WrongRange):
        ranges.expand(f"w{text}")


def test_values_in_ini_are_literals_of_python_or_text():
    values = ["1", "True", "true", "[1, 'a']", "{'a': None}", "(1,)", "1 +", "b'x'", "..."]
    assert [ini.value(text) for text in values] == [
        1, True, "true", [1, "a"], {"a": None}, [1], "1 +", "x", "...",
    ]  # fmt: skip
