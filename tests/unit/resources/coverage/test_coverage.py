"""The survey of real roles: each task has a rule, and each rule names only what exists, or is marked as planned."""

from __future__ import annotations

import re

from tests import ROOT
from tests.each import each
from tests.unit.resources.coverage import mapping, page
from tests.unit.resources.coverage.mapping import COMMAND, Rule, Task

RULES = mapping.rules()
# What the rules may name before it exists: node types, attributes and keys.
PLANNED = frozenset(
    {
        "ansible_module", "apt_repository", "mariadb_database", "mariadb_grant", "mariadb_user",
        "package.default_release", "package.recommends", "package_upgrade",
        "when_host",
    }
)  # fmt: skip
# The name of a `command` in YAML, Python and Hy.
WRITTEN = re.compile(r"""(?:- command: "?|\bcommand\(\s*f?"|\(command f?")([^"\n]+)""")
COMMANDS = 0.05  # the share of tasks that may stay a command


def names_of(task: Task) -> str:
    return f"{task.role}: {task.module} with {', '.join(task.options)} ({task.rule.name})"


def test_the_survey_is_complete() -> None:
    assert len(mapping.tasks()) == 588
    assert {task.rule.name for task in mapping.tasks()} == set(RULES)


def test_every_option_has_a_counterpart_or_a_reason() -> None:
    lost = [
        f"{names_of(task)}: {option}"
        for task in mapping.tasks()
        if not task.rule.is_query
        for option in task.options
        if option != "cmd" and option not in {**(task.rule.options or {}), **(task.rule.dropped or {})}
    ]
    assert not lost, "\n".join(lost)


def test_every_keyword_has_a_counterpart() -> None:
    table = mapping.keywords()
    assert {keyword for task in mapping.tasks() for keyword in task.keywords} == set(table)
    assert {entry["key"] for entry in table.values() if "key" in entry} <= mapping.existing()


@each("rule", RULES.values(), ids=lambda rule: rule.name)
def test_a_rule_names_only_what_exists_or_is_planned(rule: Rule) -> None:
    assert mapping.without_attributes(rule.needed() - mapping.existing()) <= PLANNED
    assert rule.types or rule.keys or rule.facts or rule.note, "the rule doesn't say how the task is written"
    assert rule.note or rule.types != (COMMAND,), "a command needs a reason"


def test_few_tasks_stay_a_command() -> None:
    assert sum(task.how == COMMAND for task in mapping.tasks()) <= COMMANDS * len(mapping.tasks())


def test_the_project_of_the_tests_contains_only_listed_commands() -> None:
    project = ROOT / "tests/host/corpus/project"
    found: dict[str, set[str]] = {}
    for path in sorted({*project.glob("playbooks/*"), *project.glob("roles/*/role.*")}):
        names = set(WRITTEN.findall(path.read_text(encoding="utf-8")))
        if names:
            found[str(path.relative_to(project))] = names
    assert found == {file: set(commands) for file, commands in mapping.exceptions().items()}


def test_the_page_shows_the_survey() -> None:
    shown = (ROOT / "docs/coverage.md").read_text(encoding="utf-8")
    assert shown == page.text(), "run script/docs: docs/coverage.md is out of date"


@each("kind", mapping.ranked(), ids=lambda kind: kind["kind"])
def test_the_most_used_kinds_of_resources_have_a_node_type(kind: dict[str, list[str]]) -> None:
    assert kind["types"]
    assert all(name.partition(".")[0] in kind["types"] for name in kind.get("keys", ()))
