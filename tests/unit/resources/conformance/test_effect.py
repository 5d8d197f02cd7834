"""Another source wins over a node: the plan fails and names it, and `allow_override: true` accepts it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from statecfg import resources
from statecfg.remote.graph.names import Outcome
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.run.effects import ACCEPT
from tests.unit.resources import test_cases as cases
from tests.unit.resources.conformance.types import STATE_DIR, TYPES, prepared, type_of
from tests.unit.resources.test_cases import Case

# Why nothing wins over the nodes of these types. The others declare `effect`, and have cases of it.
ALONE = {
    **dict.fromkeys(
        (
            "acl", "archive", "block_in_file", "capabilities", "directory", "download", "file", "filesystem",
            "generate", "git_checkout", "hard_link", "ini_key", "json_key", "line_in_file", "lvm_logical_volume",
            "lvm_volume_group", "python_venv", "release_binary", "remove", "replace", "symlink", "tls_certificate",
            "tls_key", "toml_key", "xattr", "yaml_key", "gem", "npm_package",
        ),
        "the node is about the file or device itself, not about what a program makes of it",
    ),
    **dict.fromkeys(
        (
            "alternative", "container", "container_image", "compose_project", "debconf", "diversion", "dnf_group",
            "dnf_module", "group", "hostname", "mariadb_database", "mariadb_grant", "package",
            "package_upgrade", "password_aging", "postgresql_database", "postgresql_extension", "postgresql_grant",
            "postgresql_user", "selinux_boolean", "selinux_fcontext", "selinux_port", "service",
            "swap", "ufw", "ufw_rule", "user",
        ),
        "the node asks the program that decides, in its check",
    ),
    **dict.fromkeys(
        ("ansible_module", "command", "http_request", "reboot", "wait_for"), "the node runs something, or waits"
    ),
    "cron": "another file of its kind adds to it",
    "logrotate": "logrotate refuses two rules for a log file, and the node fails in its check",
    "ca_certificate": "certificates add up",
    "dnf_repository": "the node fails if dnf reads another definition of its id first",
    "pacman_repository": "the order is that of the main file, in which the node edits its line",
    "pam": "the node edits the stack itself",
    "ssh_key": "the node is about the file itself",
    "zypper_repository": "the node fails if another file defines its alias differently",
}  # fmt: skip


def won(name: str) -> list[Case]:
    """Return the cases of a type in which another source wins."""
    return [case for case in cases.cases_of(name) if "error" in case.data and type_of(case) == name and _lost(case)]


def _lost(case: Case) -> bool:
    error = case.data["error"]
    words = ("does not read", "nothing reads", "does not use", "refuses keys", "the server prefers")
    return bool(re.search(r"\bline \d+ of ", error)) or any(text in error for text in words)


def asking() -> list[str]:
    for name in resources.available():
        getattr(resources, name)
    return [name for name in TYPES if "effect" in REGISTRY[name].methods]


def test_every_node_type_asks_or_has_a_reason() -> None:
    assert sorted({*asking(), *ALONE}) == TYPES
    assert not set(asking()) & set(ALONE)


def test_another_source_that_wins_fails_the_plan_unless_it_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATECFG_STATE_DIR", STATE_DIR)
    for name in asking():
        assert won(name), name
        for number, case in enumerate(won(name)):
            step = (example := prepared(case, tmp_path / f"{name}-{number}")).step(example.plan())
            assert step.outcome == Outcome.FAILED and case.data["error"] in step.reason, case.place
            assert step.reason.endswith(ACCEPT), case.place
            accepted = Case(case.place, {**case.data, "node": {**case.data["node"], "allow_override": True}})
            step = (example := prepared(accepted, tmp_path / f"{name}-{number}-accepted")).step(example.plan())
            assert step.outcome in Outcome.SOUND, f"{case.place}: {step.reason}"
