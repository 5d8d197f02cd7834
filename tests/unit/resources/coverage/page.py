"""Writes docs/coverage.md. `script/docs` runs this."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.unit.resources.coverage import mapping
from tests.unit.resources.coverage.mapping import COMMAND, Rule, Task

MADE = "<!-- Made from the code by script/docs. -->\n"
HEAD = """\
# Coverage

How much of what real configurations contain can be written in statecfg. The survey has {count} tasks and handlers that
describe something, from ten widely used Ansible roles: web server, Redis, PostgreSQL, MySQL, Docker, time service,
protection against intrusion, and three roles that harden hosts and SSH.

`tests/unit/resources/coverage/` has a line for each task, and the rule that says how it is written. A test checks that
every option of every task has a counterpart or a reason, and that each node type, attribute, key and fact exists.
"Planned" counts tasks that need something which does not exist yet. The templates of these roles
[stay unchanged](measured.md#templates-of-ansibles-roles): statecfg and Ansible render them to the same bytes.

"""
PLANNED = """\

Planned: {missing}.
"""

PROJECT = """
The tests [apply nine playbooks and three roles](measured.md#whole-playbooks) of the size of the surveyed roles to real
hosts. They contain these commands:

"""


def text() -> str:
    """Return the page."""
    tasks = mapping.tasks()
    missing = mapping.without_attributes(frozenset().union(*(task.missing() for task in tasks)))
    planned = PLANNED.format(missing=", ".join(f"`{name}`" for name in sorted(missing))) if missing else ""
    return "".join(
        [
            MADE + HEAD.format(count=len(tasks)),
            _summary(tasks),
            planned,
            "\n## How each kind of task is written\n\n",
            _kinds(tasks),
            "\n## Commands\n\n",
            "These tasks stay a `command`. All others use node types, or need nothing.\n\n",
            _commands(tasks),
            PROJECT,
            _exceptions(),
            "\n## Options without a counterpart\n\n",
            _dropped(tasks),
            "\n## Keywords\n\n",
            _keywords(tasks),
            "\n## The forty most used kinds of resources\n\n",
            "Ordered by how often roles use them.\n\n",
            _ranked(),
        ]
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _summary(tasks: Sequence[Task]) -> str:
    roles = list(dict.fromkeys(task.role for task in tasks))
    rows = [_counts(role.replace("_", " "), [task for task in tasks if task.role == role]) for role in roles]
    return _table(("role", "tasks", "without `command`", "`command`", "planned"), [*rows, _counts("all", tasks)])


def _counts(name: str, tasks: Sequence[Task]) -> list[str]:
    counted = Counter(task.how for task in tasks)
    found = [f"{counted[how]} ({counted[how] / len(tasks):.1%})" for how in ("node", COMMAND, "planned")]
    return [name, str(len(tasks)), *found]


def _kinds(tasks: Sequence[Task]) -> str:
    counted = Counter(task.rule.name for task in tasks)
    planned = Counter(task.rule.name for task in tasks if task.how == "planned")
    rows = []
    for rule in mapping.rules().values():
        if rule.types != (COMMAND,):
            later = f"{planned[rule.name]} planned" if planned[rule.name] else ""
            notes = "; ".join(filter(None, (rule.note, later)))
            rows.append((rule.what, str(counted[rule.name]), _written(rule), notes))
    return _table(("kind of task", "tasks", "written as", ""), rows)


def _written(rule: Rule) -> str:
    facts = [f"host.facts.{fact}" for fact in rule.facts]
    return ", ".join(f"`{name}`" for name in (*rule.types, *rule.keys, *facts))


def _commands(tasks: Sequence[Task]) -> str:
    counted = Counter(task.rule.name for task in tasks)
    rows = [
        (rule.what, str(counted[rule.name]), rule.note) for rule in mapping.rules().values() if rule.types == (COMMAND,)
    ]
    return _table(("kind of task", "tasks", "why"), rows)


def _exceptions() -> str:
    rows = [
        (f"`{file}`", f"`{name}`", reason)
        for file, commands in mapping.exceptions().items()
        for name, reason in commands.items()
    ]
    return _table(("file", "command", "why"), rows)


def _dropped(tasks: Sequence[Task]) -> str:
    counted: Counter[tuple[str, str, str]] = Counter()
    for task in tasks:
        for option in task.options:
            reason = (task.rule.dropped or {}).get(option)
            if reason is not None:
                counted[(task.rule.what, option, reason)] += 1
    rows = [(what, f"`{option}`", str(count), reason) for (what, option, reason), count in counted.items()]
    return _table(("kind of task", "option", "tasks", "why"), sorted(rows))


def _keywords(tasks: Sequence[Task]) -> str:
    counted = Counter(keyword for task in tasks for keyword in task.keywords)
    table = mapping.keywords()
    rows = []
    for keyword, count in counted.most_common():
        replaced = table[keyword]
        rows.append((f"`{keyword}`", str(count), f"`{replaced['key']}`" if "key" in replaced else replaced["instead"]))
    return _table(("keyword", "tasks", "statecfg"), rows)


def _ranked() -> str:
    rows = []
    for number, kind in enumerate(mapping.ranked(), 1):
        names = [*kind["types"], *kind.get("keys", ())]
        missing = mapping.without_attributes(frozenset(names) - mapping.existing())
        there = [f"`{name}`" for name in kind["types"] if name not in missing]
        notes = [kind["note"]] if "note" in kind else []
        if missing:
            notes.append("planned: " + ", ".join(f"`{name}`" for name in sorted(missing)))
        rows.append((str(number), kind["kind"], ", ".join(there) or "none", "; ".join(notes)))
    return _table(("", "kind", "node types", ""), rows)
