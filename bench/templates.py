"""Compare templates of Ansible roles as statecfg and Ansible render them: `python bench/templates.py DIRECTORY…`.

A directory is a role or contains roles. Each template is put unchanged into a role of statecfg and rendered for every
built-in set of facts, and again with every variable reversed that is true or false. Ansible's own templar renders it
with the same variables: those of the role's `defaults/` and `vars/`, and those of `--vars FILE`, which the role's tasks
would set. Both results must be the same bytes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from statecfg.templates import ansible
from statecfg.testing import Definitions, ImaginedHost, fact_set

# What Ansible's `setup` reports on these systems.
FACTS: Mapping[str, Mapping[str, Any]] = {
    "debian-12": {"distribution": "Debian", "distribution_major_version": "12", "distribution_release": "bookworm"},
    "ubuntu-24.04": {"distribution": "Ubuntu", "distribution_major_version": "24", "distribution_release": "noble"},
    "alma-9": {"distribution": "AlmaLinux", "distribution_major_version": "9", "distribution_release": "Sage Margay"},
}


def ansible_facts(name: str) -> dict[str, Any]:
    """Return the facts of a built-in set under Ansible's names."""
    facts = fact_set(name)
    return {
        **FACTS[name],
        "os_family": {"debian": "Debian", "redhat": "RedHat"}[facts["os"]["family"]],
        "distribution_version": facts["os"]["version"],
        "kernel": facts["kernel"],
        "fips": False,
        "processor_count": facts["cpus"],
        "system": "Linux",
        "default_ipv4": {"address": facts["ipv4"], "interface": "eth0", "gateway": "192.0.2.1"},
        "systemd": {"version": int(facts["packages"]["systemd"].split(".")[0].split("-")[0])},
    }


def roles(directories: list[Path]) -> Iterator[Path]:
    """Yield the directories that have templates of a role."""
    for directory in directories:
        yield from sorted(found.parent for found in directory.rglob("templates") if "molecule" not in found.parts)


def variables(role: Path, facts: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables that Ansible has for a role, with the templates in them rendered."""
    family, system, major = (facts[name] for name in ("os_family", "distribution", "distribution_major_version"))
    files = ["defaults/main.yml"]
    files += [f"vars/{name}.yml" for name in ("main", family, system, f"{family}-{major}", f"{system}-{major}")]
    names = {f"ansible_{name}": value for name, value in facts.items()}
    values: dict[str, Any] = {**names, "ansible_facts": dict(facts), "ansible_role_name": role.name}
    for file in files:
        if (role / file).is_file():
            values.update(_trusted(yaml.safe_load((role / file).read_text()) or {}))
    for name in [name for name in values if name.startswith("__")]:  # a convention of roles, whose tasks copy them
        values.setdefault(name[2:], values[name])
    values.update(more)
    templar = Templar(DataLoader(), variables=values)
    rendered = {}
    for name in values:
        try:
            rendered[name] = json.loads(json.dumps(templar.template(values[name])))
        except Exception as error:  # another system's variable; the template fails if it needs it
            print(f"  {role.name}: {name}: {str(error).splitlines()[0]}")
    return rendered


def _trusted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _trusted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_trusted(item) for item in value]
    return trust_as_template(value) if isinstance(value, str) else value


def by_ansible(template: Path, values: Mapping[str, Any]) -> str:
    """Return what Ansible's module `template` writes; an exception if it fails."""
    values = {**values, "ansible_managed": ansible.MANAGED}
    templar = Templar(DataLoader(), variables=values)
    templar = templar.copy_with_new_env(searchpath=[str(template.parent)], available_variables=values)
    options = {"trim_blocks": True, "lstrip_blocks": False, "newline_sequence": "\n"}
    text = trust_as_template(template.read_text())
    return str(templar.template(text, escape_backslashes=False, overrides=options) or "")


def by_statecfg(project: Path, role: Path, template: Path, values: Mapping[str, Any], facts: str) -> str:
    """Return what a `file` node with the template writes in a role with the variables."""
    copy = project / "roles" / role.name
    shutil.copytree(role / "templates", copy / "templates", dirs_exist_ok=True)
    node = {"file": "/srv/result", "template": str(template.relative_to(role / "templates"))}
    own = {name: value for name, value in values.items() if not name.startswith("ansible_")}
    copy.joinpath("role.yml").write_text(json.dumps({"templates": "ansible", "resources": [{**node, "vars": own}]}))
    (project / "play.yml").write_text(yaml.safe_dump({"hosts": "web1", "resources": [{"include": role.name}]}))
    (project / "inventory.yml").write_text("hosts: {web1: {}}\n")
    plan = Definitions(project).plan("play.yml", on=ImaginedHost(facts=facts))
    return str(plan["file:/srv/result"].content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--vars", type=Path, help="YAML: name of a role → variables without a default, such as `item`")
    given = parser.parse_args()
    more = yaml.safe_load(given.vars.read_text()) if given.vars else {}
    equal = total = 0
    for role in roles(given.directories):
        for template in sorted(role.joinpath("templates").rglob("*.j2")):
            own = more.get(role.name, {})
            results = {
                f"{name}{', reversed' if reverse else ''}": compared(role, template, name, own, reverse)
                for name in FACTS
                for reverse in (False, True)
            }
            total += 1
            equal += set(results.values()) == {"equal"}
            print(f"{role.name}/{template.relative_to(role / 'templates')}: {summary(results)}")
    print(f"{equal} of {total} templates are equal on {', '.join(FACTS)}")


def compared(role: Path, template: Path, name: str, more: Mapping[str, Any], reverse: bool) -> str:
    """Return "equal", or how the two results for a set of facts differ.

    :param reverse: whether variables that are true are false, and the other way around, for the other branches
    """
    values = variables(role, ansible_facts(name), more)
    values = {key: not value if reverse and isinstance(value, bool) else value for key, value in values.items()}
    results = []
    with tempfile.TemporaryDirectory() as directory:
        for render in (
            lambda: by_ansible(template, values),
            lambda: by_statecfg(Path(directory), role, template, values, name),
        ):
            try:
                results.append(render())
            except Exception as error:  # any failure is a result to report
                results.append(f"fails: {error}")
    both_fail = all(result.startswith("fails") for result in results)
    if results[0] == results[1] or (both_fail and reverse):
        return "equal"
    if both_fail:
        return f"both fail: {results[0]} / {results[1]}"
    pairs = zip(results[0].splitlines(), results[1].splitlines(), strict=False)
    return next((f"{one!r} and {two!r}" for one, two in pairs if one != two), "the ends differ")


def summary(results: Mapping[str, str]) -> str:
    """Return the results of a template in one line, if they are the same for all sets of facts."""
    if len(set(results.values())) == 1:
        return next(iter(results.values()))
    return "; ".join(f"{name}: {result}" for name, result in results.items())


if __name__ == "__main__":
    main()
