"""Wrong input is found before any host is contacted: variables, users, addresses, keys, words of Ansible, files."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
from pathlib import Path

import pytest

from statecfg import resources
from statecfg.cli import preflight
from statecfg.dialects import ansible_words
from statecfg.playbook.inventory import Host, Login
from statecfg.problems import InvalidInput
from statecfg.transport import SshSettings, key_files
from tests.host.command import Ran, statecfg
from tests.lab import PlainSshd

PLAY = """\
hosts: all
vars: {port: 80}
resources:
  - directory: /srv/{{ kind }}
    when: wanted | default(true)
  - file: /etc/app.conf
    template: app.conf.j2
  - include: more.yml
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "inventory.yml").write_text("hosts: {web1: {address: 192.0.2.1, vars: {zone: eu}}}\n")
    (tmp_path / "play.yml").write_text(PLAY)
    (tmp_path / "app.conf.j2").write_text("{% include 'part.j2' %}\nlisten {{ listen | default(1) }}\n")
    (tmp_path / "part.j2").write_text("{{ deep | default(1) }}\n")
    (tmp_path / "more.yml").write_text("vars: {own: 1}\nresources: [{file: /x, content: '{{ own }}{{ inner }}'}]\n")
    return tmp_path


def refused(project: Path, *words: str) -> str:
    ran = statecfg("validate", "play.yml", *words, cwd=project, code=5)
    return ran.err


def test_a_variable_that_nothing_reads_is_refused(project: Path) -> None:
    read = ("kind", "wanted", "port", "zone", "listen", "deep", "own", "inner")
    given = [word for name in read for word in ("-e", f"{name}=true")]
    statecfg("validate", "play.yml", *given, "-e", '{"wanted": true}', cwd=project)
    said = refused(project, "-e", "kind=a", "-e", "inner=b", "-e", "prot=81")
    assert "SC0424" in said and "-e sets `prot`" in said and "did you mean `port`?" in said


PROGRAMS = {
    "play.py": (
        "from statecfg import play\nfrom statecfg.resources import file\n\n"
        "@play(hosts='all')\ndef web(host):\n    return file('/x', content=host.vars.get('mentioned', ''))\n"
    ),
    "play.hy": "(require statecfg.dialects.hy [defplay])\n(import statecfg.resources [file])\n"
    '(defplay web [host]\n  {:hosts "all"}\n  (file "/x" :content (.get host.vars "mentioned" "")))\n',
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_as_playbook_only_warns_of_an_unmentioned_variable(project: Path, name: str) -> None:
    (project / name).write_text(PROGRAMS[name])
    ran = statecfg("validate", name, "-e", "mentioned=1", "-e", "other=1", cwd=project)
    assert "does not seem to read `other`" in ran.err and "mentioned" not in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": NaN}', "NaN"),
        ('{"a": Infinity}', "Infinity"),
        ('{"a": 1e999}', "1e999 is too large a number"),
        ("{" * 3 + '"a":', "not valid JSON"),
        ('{"a": ' + "[" * 30_000 + "]" * 30_000 + "}", "nested more than 100 levels"),
        ('{"a": ' + "9" * 5000 + "}", "an integer of 5000 digits"),
        ("[1]", "not key=value"),
    ],
)
def test_invalid_json_variables_are_refused(project: Path, text: str, said: str) -> None:
    assert said in refused(project, "-e", text)


@pytest.mark.parametrize(
    "words", [("-u", "-oProxyCommand=x"), ("-u", "a b"), ("-u", "$(id)"), ("--become-user", "a;b"), ("-u", "")]
)
def test_a_wrong_user_is_refused_before_connecting(project: Path, words: tuple[str, str]) -> None:
    ran = statecfg("plan", "play.yml", *words, "-e", "kind=a", "-e", "inner=b", cwd=project, code=5)
    assert "is not a user name" in ran.err


@pytest.mark.parametrize("address", ["192.0.2.1:22", "web1.example.com:2222", "'[2001:db8::1]:22'"])
def test_an_address_with_a_port_is_refused(project: Path, address: str) -> None:
    (project / "inventory.yml").write_text(f"hosts:\n  web1: {{address: {address}}}\n")
    said = refused(project, "-e", "kind=a", "-e", "inner=b")
    assert "which contains a port" in said and "and port: 22" in said and "inventory.yml:2" in said


@pytest.mark.parametrize("address", ["2001:db8::1", "::1", "192.0.2.1", "web1"])
def test_an_address_without_a_port_is_accepted(project: Path, address: str) -> None:
    (project / "inventory.yml").write_text(f"hosts:\n  web1: {{address: '{address}'}}\n")
    statecfg("validate", "play.yml", "-e", "kind=a", "-e", "inner=b", cwd=project)


# Keys


def keygen(path: Path, *more: str) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path), *more], check=True)
    return path


def fido(path: Path) -> Path:
    """Write a key file like that of `ssh-keygen -t ed25519-sk`; such a key has its private half in the device."""
    import base64
    import struct

    def text(data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + data

    public = text(b"sk-ssh-ed25519@openssh.com") + text(bytes(32)) + text(b"ssh:")
    whole = b"openssh-key-v1\0" + text(b"none") + text(b"none") + text(b"") + struct.pack(">I", 1) + text(public)
    body = base64.b64encode(whole + text(bytes(64))).decode()
    path.write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Path]:
    good = keygen(tmp_path / "good")
    shared = keygen(tmp_path / "shared")
    shared.chmod(0o640)
    putty = tmp_path / "key.ppk"
    putty.write_text("PuTTY-User-Key-File-3: ssh-ed25519\n")
    putty.chmod(0o600)
    return {
        "good": good,
        "public": tmp_path / "good.pub",
        "shared": shared,
        "putty": putty,
        "fido": fido(tmp_path / "sk"),
    }


def test_unusable_keys_are_recognized(keys: dict[str, Path]) -> None:
    said = {name: key_files.unusable(str(path)) for name, path in keys.items()}
    assert said["good"] == ""
    assert "public key" in said["public"] and "PuTTY key" in said["putty"] and "FIDO" in said["fido"]
    assert f"chmod 600 {keys['shared']}" in said["shared"]


def test_having_only_unusable_keys_is_an_error(
    keys: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    bad = tuple(str(path) for name, path in keys.items() if name != "good")
    settings = SshSettings(ssh_config="none", default_keys=False)
    hosts = [Host(name, "192.0.2.1", login=Login(identity_files=bad)) for name in ("web1", "web2")]
    with pytest.raises(InvalidInput) as caught:
        preflight.check(hosts, settings, 16)
    assert [item.code for item in caught.value.problems] == ["SC0452", "SC0452"]
    warned = capsys.readouterr().err.splitlines()
    assert len(warned) == len(bad) and all(line.startswith("warning: the key ") for line in warned)
    preflight.check([Host("web1", "192.0.2.1", login=Login(identity_files=(*bad, str(keys["good"]))))], settings, 16)
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    preflight.check(hosts, settings, 16)


def test_an_unusable_key_is_skipped_and_another_one_logs_in(
    sshd: PlainSshd, keys: dict[str, Path], project: Path
) -> None:
    (project / "config").write_text(f"Host *\n  UserKnownHostsFile {sshd.known_hosts}\n  IdentitiesOnly yes\n")
    listed = ", ".join(map(str, (keys["putty"], keys["fido"], sshd.identity)))
    host = f"{{address: {sshd.address}, port: {sshd.port}, user: {sshd.user}, key: [{listed}]}}"
    (project / "inventory.yml").write_text(f"hosts: {{web1: {host}, again: {host}}}\n")
    (project / "play.yml").write_text("hosts: web1\nresources: [{directory: /srv}]\n")
    ran = statecfg("plan", "play.yml", "--ssh-config", "config", cwd=project)
    assert ran.err.count("is skipped: it is a PuTTY key") == 1 and "FIDO" in ran.err
    shared_ledger(project, ran)


def shared_ledger(project: Path, ran: Ran) -> None:
    """Check that the second of two names of the same machine gets a warning."""
    (project / "play.yml").write_text(f"hosts: all\nresources: [{{file: {project}/made, content: x}}]\n")
    words = ("apply", "play.yml", "--yes", "--json", "--ssh-config", "config")
    ran = statecfg(*words, "--lock-timeout", "60", cwd=project)
    texts = [text for host in ran.json()["hosts"].values() for text in host.get("warnings", ())]
    (warning,) = [text for text in texts if "same machine" in text]
    names, end = warning.split(" are names ")
    assert (sorted(names.split(" and ")), end) == (["again", "web1"], "of the same machine and user; use one of them")


def test_too_many_forks_for_the_open_file_limit_are_refused() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    child = os.fork()
    if child == 0:  # the limit can't be raised again
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128))
            preflight.check([], SshSettings(ssh_config="none"), 500)
            local = [Host(f"h{number}", transport="local") for number in range(500)]
            preflight.check(local[:5], SshSettings(ssh_config="none"), 500)
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 124
            try:
                preflight.check(local, SshSettings(ssh_config="none"), 500)
            except InvalidInput as wrong:
                (item,) = wrong.problems
                assert "--forks 500 needs" in item.detail and "use --forks 5" in item.help
            else:
                os._exit(3)
            try:  # these stay connected
                preflight.check(local, SshSettings(ssh_config="none"), 2, with_units=500)
            except InvalidInput as wrong:
                (item,) = wrong.problems
                os._exit(0 if "--forks 2 with 500 connected hosts needs 2088 open files" in item.detail else 4)
            os._exit(6)
        except BaseException:
            os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


# YAML


def test_ansible_words_are_explained_at_their_location(project: Path) -> None:
    (project / "play.yml").write_text(
        "hosts: all\nbecome: true\nresources:\n"
        "  - name: install it\n    apt: {name: nginx}\n"
        "  - package: nginx\n    notify: restart\n    loop: [a, b]\n"
        "  - roles: [web]\n"
        "  - ansible.builtin.copy: {src: a}\n"
        "  - command: id\n    argv: [id]\n    register: who\n    become: true\n"
    )
    said = refused(project)
    for line, word in (
        (2, "become"), (4, "name"), (5, "apt"), (7, "notify"), (8, "loop"), (9, "roles"), (10, "ansible.builtin.copy"),
        (13, "register"), (14, "become"),
    ):  # fmt: skip
        assert f"play.yml:{line}:" in said and f"`{word}` is an Ansible" in said, word
    assert "`creates`, `unless`, `onlyif`" in said and said.count("set `become` for the host in the inventory") == 2
    assert "for_each: LIST" in said and "restart_on" in said and "the node type is `package`" in said


def test_no_node_type_counts_as_an_ansible_word() -> None:
    for name in resources.available():
        assert not ansible_words.equivalent(name), name


def test_a_module_of_a_collection_can_be_run() -> None:
    said = ansible_words.equivalent("community.general.pacman_key")
    assert "write `ansible_module: NAME` with `module: community.general.pacman_key`" in said


def test_a_wrong_requirement_is_shown_where_it_is_written(project: Path) -> None:
    (project / "play.yml").write_text(
        "hosts: all\nresources:\n  - directory: /srv\n  - file: /srv/a\n    content: a\n    requires:\n"
        "      - directory:/srv\n      - directory:/svr\n  - service: x\n    restart_on: file:/srv/b\n"
    )
    said = refused(project)
    assert "play.yml:8:9" in said and "play.yml:10:17" in said


@pytest.mark.parametrize("written", ["template: app.cnof.j2", "source: filse.txt"])
def test_a_file_with_a_similar_name_is_suggested(project: Path, written: str) -> None:
    (project / "files.txt").write_text("")
    (project / "play.yml").write_text(f"hosts: all\nresources:\n  - file: /x\n    {written}\n")
    right = "app.conf.j2" if "j2" in written else "files.txt"
    assert f"did you mean `{right}`?" in refused(project)


def test_missing_playbooks_and_includes_suggest_similar_files(project: Path) -> None:
    ran = statecfg("plan", "plai.yml", cwd=project, code=5)
    assert "did you mean `play.yml`?" in ran.err
    (project / "play.yml").write_text("hosts: all\nresources: [{include: moer.yml}]\n")
    assert "did you mean `more.yml`?" in refused(project)


def test_content_accepts_a_number_from_a_template(project: Path) -> None:
    (project / "play.yml").write_text(
        f"hosts: '@local'\nvars: {{port: 8080}}\nresources: [{{file: {project}/made, content: '{{{{ port }}}}'}}]\n"
    )
    statecfg("apply", "play.yml", "--yes", cwd=project)
    assert (project / "made").read_text() == "8080" and stat.S_ISREG((project / "made").stat().st_mode)


def test_an_unreadable_ssh_config_is_an_error_before_connecting(project: Path) -> None:
    (project / "wrong").write_text('Host "x\n')
    for name, said in {"missing": "missing: No such file", "wrong": "wrong:1: a quote is not closed"}.items():
        ran = statecfg("plan", "play.yml", "-e", "kind=a", "-e", "inner=b", "--ssh-config", name, cwd=project, code=5)
        assert said in ran.err


@pytest.mark.parametrize("name", ["play.yml", "./inventory.yml", "part.j2"])
def test_a_saved_plan_never_overwrites_its_own_input_files(project: Path, name: str) -> None:
    before = (project / name).read_text()
    ran = statecfg("plan", "play.yml", "-e", "kind=a", "-e", "inner=b", "-o", name, cwd=project, code=5)
    assert "is a file that the plan is made from" in ran.err and (project / name).read_text() == before


def test_a_wrong_hosts_value_is_reported_once(project: Path) -> None:
    (project / "play.yml").write_text("hosts:\nresources: [{file: /x, content: a}]\n")
    assert "1 problem found" in refused(project)
    (project / "play.yml").write_text("hosts: []\nresources: [{file: /x, content: a}]\n")
    assert "has an empty term" in refused(project)


def test_a_node_is_never_advised_to_require_itself(project: Path) -> None:
    (project / "play.yml").write_text("hosts: all\nresources: [{file: /x, content: a, requires: ['file:/y']}]\n")
    assert "file:/x`" not in refused(project).replace("file:/x requires", "")


def test_statecfg_without_arguments_shows_its_help(project: Path) -> None:
    ran = statecfg(cwd=project, code=None)
    assert (ran.out + ran.err).startswith("Usage: statecfg ")
    assert "`statecfg plan --help`" in statecfg("plan", "play.yml", "--diff=3", cwd=project, code=5).err
