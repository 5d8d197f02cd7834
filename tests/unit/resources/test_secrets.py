"""Secrets in attributes that other users of the host could read: a declaration with one is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecfg import merge_graphs, problems, resources
from statecfg.facts.variables import Vars
from statecfg.graph.generated import GeneratedSecret
from statecfg.graph.opaque import Secret
from statecfg.graph.outputs import output
from statecfg.playbook.compile import compile_graph
from statecfg.playbook.context import WireContext
from statecfg.playbook.plays import HostContext
from tests.each import each

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
NODES: list[tuple[str, str, dict[str, Any]]] = [
    ("cron", "a", {"schedule": "@daily", "command": "true"}),
    ("sudoers", "a", {"users": ["a"], "commands": ["/bin/true"], "run_as": "ALL"}),
    ("limits", "a", {"domain": "a", "soft": {"nofile": "3"}}),
    ("logrotate", "a", {"paths": ["/a"], "directives": ["weekly"], "scripts": {"postrotate": "true"}}),
    ("systemd_unit", "a", {"sections": {"Service": {"ExecStart": "/bin/true", "Environment": ["A=a", "B=b"]}}}),
    ("systemd_unit", "a", {"content": "[Service]\nExecStart=/bin/true\n"}),
    ("quadlet", "a.container", {"content": "[Container]\nImage=a\n"}),
    ("quadlet", "a.container", {"sections": {"Container": {"Image": "a", "Environment": "A=a"}}}),
    ("ssh_config", "a", {"content": "Host a\n"}),
    ("ssh_config", "a", {"settings": {"User": "a"}}),
    ("sshd_config", "a", {"content": "Banner none\n"}),
    ("symlink", "/a", {"target": "b"}),
    ("host_entry", "192.0.2.1", {"names": ["a"]}),
    ("known_host", "a", {"key": KEY}),
    ("authorized_key", "a", {"user": "root", "key": KEY}),
    ("sysctl", "a.b", {"value": "1"}),
    ("mount", "/a", {"source": "a", "fstype": "b", "mount_options": ["c"]}),
    ("kernel_module", "a", {"parameters": {"b": "1"}}),
    ("swap", "/a", {"size": "1G"}),
    ("filesystem", "/a", {"fstype": "ext4", "label": "a", "format_options": ["-q"]}),
    ("password_aging", "a", {"expires": "2037-01-31"}),
    ("ufw_rule", "a", {"comment": "a", "from_address": "192.0.2.1", "interface": "eth0"}),
    ("nftables", "a", {"content": "chain a {\n}\n"}),
    (
        "pam",
        "a",
        {"service": "su", "module_type": "auth", "module": "pam_a.so", "control": "required", "arguments": ["a"]},
    ),
    ("selinux_fcontext", "/a", {"setype": "a_t"}),
    ("selinux_port", "80/tcp", {"setype": "a_t"}),
    ("lvm_logical_volume", "a", {"volume_group": "b", "size": "1G"}),
    ("lvm_volume_group", "a", {"extent_size": "4M", "devices": ["/dev/vdb"]}),
    ("locale", "de_DE.UTF-8", {"default_for": ["LANG"]}),
    ("alternative", "a", {"path": "/b", "link": "/c", "priority": 1}),
    ("diversion", "/a", {"to": "/b"}),
    ("wait_for", "a", {"url": "http://a", "contains": "a"}),
    ("wait_for", "a", {"port": 1, "address": "a"}),
    ("wait_for", "a", {"command": ["a", "b"]}),
    ("wait_for", "a", {"command": "a b"}),
    ("wait_for", "a", {"unit": "a"}),
    ("assertion", "a", {"url": "http://a", "contains": "a"}),
]


def with_secret(value: Any, secret: Any) -> Any:
    """Return a value with a secret in place of a text, of the last element of a list, or of the values of a map."""
    if isinstance(value, list):
        return [*value[:-1], with_secret(value[-1], secret)]
    if isinstance(value, dict):
        return {name: with_secret(item, secret) for name, item in value.items()}
    return secret


@each("text", ["", "before "], ids=["alone", "in a text"])
@each(
    ("kind", "argument", "attrs", "name"),
    [(*node, name) for node in NODES for name in node[2]],
    ids=lambda part: part if isinstance(part, str) and part != KEY else "",
)
def test_secret_that_others_could_read_is_refused(
    kind: str, argument: str, attrs: dict[str, Any], name: str, text: str
) -> None:
    secret = Secret("token", "hunter2 hunter2")
    changed = {**attrs, name: with_secret(attrs[name], text + secret if text else secret)}
    with pytest.raises(problems.InvalidInput) as caught:
        getattr(resources, kind)(argument, **changed)
    assert all(found.code in ("SC0107", "SC0201", "SC0202", "SC0425") for found in caught.value.problems)
    assert not any("hunter2" in f"{found.detail} {found.help}" for found in caught.value.problems)


@pytest.mark.parametrize(
    ("kind", "name", "advice"), [("systemd_unit", "a", "LoadCredential"), ("quadlet", "a.container", "podman")]
)
@each("secret", [Secret("token", "hunter2 hunter2"), GeneratedSecret("token", {"kind": "password"})])
def test_secret_in_a_template_of_a_file_that_others_can_read_is_refused(
    kind: str, name: str, advice: str, secret: Any, tmp_path: Path
) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/unit").write_text("[Container]\nImage={{ word }}\n")
    graph = getattr(resources, kind)(name, template="unit")
    with problems.collecting() as found, problems.reporting():
        compile_graph(graph, WireContext(HostContext("a", Vars({"word": secret})), tmp_path))
    (problem,) = found
    assert problem.code == "SC0425" and problem.locations and advice in problem.help
    assert "uses the secret token, and every user of the host can read the file" in problem.detail
    plain = getattr(resources, kind)(name, template="unit", vars={"word": output("command:a", "stdout")})
    command = resources.command("a", argv=["/bin/true"])
    assert compile_graph(merge_graphs(command, plain), WireContext(HostContext("a"), tmp_path)).layers
    with pytest.raises(problems.InvalidInput, match=r"`vars` of .* contains a secret"):
        getattr(resources, kind)(name, template="unit", vars={"word": ["a", secret]})


PUBLIC = [
    ("systemd_unit", "a", "content"),
    ("quadlet", "a.container", "content"),
    ("ssh_config", "a", "content"),
    ("sshd_config", "a", "content"),
    ("systemd_unit", "a", "template"),
    ("quadlet", "a.container", "template"),
]


@each(("kind", "name", "attribute"), PUBLIC)
def test_value_of_a_node_with_a_secret_is_a_secret(kind: str, name: str, attribute: str, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/unit").write_text("[Container]\nImage={{ word }}\n")
    value = output("command:a", "stdout")
    given = {"template": "unit", "vars": {"word": value}} if attribute == "template" else {attribute: "Image=" + value}
    user = getattr(resources, kind)(name, **given)
    plain = resources.command("a", argv=["/bin/true"])
    assert compile_graph(merge_graphs(plain, user), WireContext(HostContext("a"), base=tmp_path)).layers
    hiding = resources.command("a", argv=["/bin/true"], env={"TOKEN": Secret("token", "hunter2 hunter2")})
    with pytest.raises(
        problems.InvalidInput, match="uses a secret; every user of the host can read it there"
    ) as caught:
        compile_graph(merge_graphs(hiding, user), WireContext(HostContext("a"), base=tmp_path))
    (problem,) = caught.value.problems
    assert problem.code == "SC0425" and problem.locations and problem.help


def test_secret_is_allowed_where_only_its_readers_see_it() -> None:
    """The environment of a cron job is in a file that only root can read, and keys in one of their user."""
    secret = Secret("token", "hunter2 hunter2")
    job = resources.cron("a", schedule="@daily", command="true", environment={"TOKEN": secret})
    key = resources.authorized_key("a", user="root", key=KEY, restrictions=["environment=A=" + secret])
    for graph in (job, key):
        assert compile_graph(graph, WireContext()).secrets == {"token": "hunter2 hunter2"}
