"""Endless Hy playbooks are stopped."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from statecfg.playbook import user_code
from statecfg.problems import InvalidInput
from tests.long.dialects.test_hy_playbooks import told, where


@pytest.mark.parametrize(
    "body",
    ["(while True None)", "(import time) (time.sleep 60)", "(while True (try (/ 1 0) (except [Exception])))"],
)
def test_an_endless_hy_playbook_is_stopped(tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "DEADLINE", 4.0)  # the time limit includes compilation
    found = told(tmp_path, body)
    assert found.code == "SC0507"
    assert where(found)[:2] == ("site.hy", 3)


def test_endless_code_on_another_thread_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "DEADLINE", 0.3)
    caught: list[InvalidInput] = []

    def work() -> None:
        try:
            with user_code.guarded("looping"):
                while True:
                    pass
        except InvalidInput as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert [each.code for error in caught for each in error.problems] == ["SC0507"]
