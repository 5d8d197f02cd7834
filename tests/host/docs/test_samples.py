"""Samples on pages that no test runs from start to end are valid too."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests import ROOT
from tests.host import upgrades
from tests.host.command import statecfg
from tests.host.pages import blocks


def sample(page: str, start: str) -> str:
    """Return the page's block that starts with the text."""
    (found,) = [block.text for block in blocks(ROOT / "docs" / page) if block.text.startswith(start)]
    return found


def test_the_yaml_sample_of_the_playbooks_page_is_valid(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/firewall.yml").write_text("- file: /etc/open\n  content: \"{{ open | join(',') }}\"\n")
    head = 'hosts: "@local"\nvars: {zone: eu}\n'
    (tmp_path / "playbook.yml").write_text(head + sample("playbooks.md", "resources:\n  - user:"))
    assert "4 resources on 1 host, no problems found" in statecfg("validate", "playbook.yml", cwd=tmp_path).out


def test_the_samples_of_the_secrets_page_are_valid(tmp_path: Path) -> None:
    (tmp_path / "token.txt").write_text("correct-horse")
    (tmp_path / "token.txt").chmod(0o600)
    head = 'hosts: "@local"\nresources:\n  - file: /etc/app\n    content: "{{ password }}{{ token }}"\n'
    (tmp_path / "playbook.yml").write_text(head + sample("secrets.md", "vars:\n  password: !secret {env:"))
    statecfg("validate", "playbook.yml", cwd=tmp_path, DB_PASSWORD="correct-horse")
    declared = sample("secrets.md", "from statecfg import secret").partition("\n")[2]
    body = f"{declared}\nreturn [\n" + sample("secrets.md", "file(").replace(")\n", "),\n") + "]\n"
    (tmp_path / "playbook.py").write_text(
        "from statecfg import play, secret\nfrom statecfg.resources import command, file\n\n"
        '@play(hosts="@local")\ndef app(host):\n' + textwrap.indent(body, "    ")
    )
    ran = statecfg("validate", "playbook.py", cwd=tmp_path, DB_PASSWORD="correct-horse")
    assert "2 resources on 1 host, no problems found" in ran.out


def test_the_play_compared_with_ansible_is_valid(tmp_path: Path) -> None:
    head, *lines = sample("coming-from.md", "# Ansible").splitlines()
    (tmp_path / "playbook.yml").write_text("\n".join(line[head.index("# statecfg") :] for line in lines))
    (tmp_path / "inventory.yml").write_text("hosts: {web1: }\ngroups: {web: {hosts: [web1]}}\n")
    (tmp_path / "site.conf.j2").write_text("listen {{ port }};\n")
    assert "3 resources on 1 host, no problems found" in statecfg("validate", "playbook.yml", cwd=tmp_path).out


def test_a_store_of_0_3_is_upgraded_as_the_page_says(tmp_path: Path) -> None:
    upgrades.store(tmp_path / "store.db")
    (shown,) = [block.text for block in blocks(ROOT / "docs/upgrading.md") if block.mark == "upgrade"]
    lines = shown.splitlines()
    for command, printed in zip(lines[::2], lines[1::2], strict=True):
        ran = statecfg(*command.removeprefix("$ statecfg ").split(), cwd=tmp_path)
        assert ran.out == f"{tmp_path}/{printed}\n"


def test_the_sample_of_the_node_types_page_is_valid(tmp_path: Path) -> None:
    entry = sample("node-types.md", "- command: rebuild-index")
    (tmp_path / "playbook.yml").write_text('hosts: "@local"\nresources:\n' + entry)
    statecfg("validate", "playbook.yml", cwd=tmp_path)


def test_the_registration_of_the_hooks_page_is_valid(tmp_path: Path) -> None:
    (tmp_path / "hooks/announce.hook").mkdir(parents=True)
    (tmp_path / "hooks/announce.hook/configuration.yaml").write_text("channel: {default: dev}\n")
    (tmp_path / "hooks/announce.yml").write_text(sample("hooks.md", "# hooks/announce.yml"))
    (tmp_path / "inventory.yml").write_text("hosts: {web1: }\ngroups: {web: {hosts: [web1]}}\n")
    (tmp_path / "statecfg.toml").write_text('store = "store.db"\n')
    ran = statecfg("hook", "list", cwd=tmp_path)
    assert 'announce  announce  {"channel": "ops"}' in ran.out and not ran.err
