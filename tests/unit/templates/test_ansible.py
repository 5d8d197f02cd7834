"""Templates of Ansible's roles give the same bytes as in Ansible.

`ansible.json` has templates, their variables, and what the module `template` of ansible-core 2.19 wrote for them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statecfg.dialects import fact_names
from statecfg.facts.catalogue import Facts, fields_of
from statecfg.problems import InvalidInput
from statecfg.templates import ansible
from statecfg.testing import Definitions, HostPlan, ImaginedHost
from tests.each import each

RECORDED = json.loads(Path(__file__).with_name("ansible.json").read_text(encoding="utf-8"))
PLAY = "hosts: web1\nresources:\n  - include: web\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "roles/web/templates").mkdir(parents=True)
    (root / "inventory.yml").write_text("hosts: {web1: {}}\ngroups: {web: {hosts: [web1]}}\n")
    (root / "play.yml").write_text(PLAY)
    (root / "roles/web/templates/part.j2").write_text(RECORDED["part"])
    return root


def plan(root: Path, template: str, facts: str = "debian-12", style: str = "ansible", **variables: Any) -> HostPlan:
    """Return the plan of a role with one file, whose template this is."""
    (root / "roles/web/templates/t.j2").write_bytes(template.encode())
    node = {"file": "/srv/t", "template": "t.j2", "vars": variables}
    role = {"templates": style, "resources": [node]} if style else {"resources": [node]}
    (root / "roles/web/role.yml").write_text(json.dumps(role))
    return Definitions(root).plan("play.yml", on=ImaginedHost(facts=facts))


def rendered(root: Path, template: str, facts: str = "debian-12", **variables: Any) -> str | None:
    return plan(root, template, facts, **variables)["file:/srv/t"].content


def test_results_equal_those_of_ansible(project: Path) -> None:
    results = [rendered(project, case["template"], **RECORDED["variables"]) for case in RECORDED["cases"]]
    assert results == [case["result"] for case in RECORDED["cases"]]


def test_facts_have_the_names_and_values_of_ansible(project: Path) -> None:
    text = "{{ ansible_distribution }} {{ ansible_facts.distribution_major_version }} {{ ansible_facts.os_family }} " \
        "{{ ansible_pkg_mgr }} {{ ansible_service_mgr }} {{ ansible_systemd.version }}"  # fmt: skip
    assert [rendered(project, text, facts) for facts in ("debian-12", "ubuntu-24.04", "alma-9")] == [
        "Debian 12 Debian apt systemd 252",
        "Ubuntu 24 Debian apt systemd 255",
        "AlmaLinux 9 RedHat dnf systemd 252",
    ]


def test_names_of_ansible_are_values_of_the_host_and_the_role(project: Path) -> None:
    text = "{{ inventory_hostname }} {{ group_names }} {{ ansible_role_name }} {{ ansible_managed }}"
    assert rendered(project, text) == "web1 ['web'] web Managed by statecfg"
    assert rendered(project, text, ansible_managed="Ask Ann") == "web1 ['web'] web Ask Ann"


def test_each_name_of_a_fact_reads_the_facts_that_it_declares(project: Path) -> None:
    (project / "play.yml").write_text(PLAY)
    for name, alias in ansible.FACTS.items():
        assert set(alias.facts) <= set(fields_of(Facts))
        assert rendered(project, f"{{{{ ansible_facts.{name} }}}}") == rendered(project, f"{{{{ ansible_{name} }}}}")
        found, _ = fact_names.mentioned(str(project / "play.yml"), str(project), ())
        assert found == set(alias.facts), name


def test_other_templates_have_no_names_of_ansible(project: Path) -> None:
    with pytest.raises(InvalidInput, match="the variable `ansible_managed` is not defined"):
        plan(project, "{{ ansible_managed }}", style="")
    assert plan(project, "#jinja2: trim_blocks: False\n", style="")["file:/srv/t"].content == (
        "#jinja2: trim_blocks: False\n"
    )


@each(
    ("template", "error"),
    [
        ("#jinja2: nosuch: True\n", "the wrong setting 'nosuch: True'"),
        ("#jinja2: trim_blocks: 1\n", "the wrong setting 'trim_blocks: 1'"),
        ("#jinja2: trim_blocks\n", "the wrong setting 'trim_blocks'"),
        ("#jinja2:\n", "the wrong setting ''"),
        ("#jinja2: trim_blocks: True\na\n{{ nosuch }}\n", r"t\.j2:3"),
        ("{{ ansible_facts.nosuch }}\n", "has no key `nosuch`"),
    ],
)
def test_mistakes_have_a_place(template: str, error: str, project: Path) -> None:
    with pytest.raises(InvalidInput, match=error):
        plan(project, template)


def test_a_role_can_ask_for_nothing_else(project: Path) -> None:
    with pytest.raises(InvalidInput, match="`templates:` must be ansible"):
        plan(project, "", style="salt")


def test_a_list_with_a_secret_is_not_printed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret-token")
    (project / "secret.yml").write_text(f"vars: {{token: !secret {{env: TOKEN}}}}\n{PLAY}")
    (project / "roles/web/templates/t.j2").write_text("{{ [token] }}")
    (project / "roles/web/role.yml").write_text(
        json.dumps({"templates": "ansible", "resources": [{"file": "/srv/t", "template": "t.j2"}]})
    )
    with pytest.raises(InvalidInput, match="the value of an expression is a list"):
        Definitions(project).plan("secret.yml", on=ImaginedHost(facts="debian-12"))


def test_the_docs_name_each_fact() -> None:
    page = Path(__file__).parents[3].joinpath("docs/roles.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `ansible_facts.NAME`"))
    assert not [name for name in ansible.FACTS if f"`{name}`" not in row]
