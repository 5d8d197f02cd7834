"""The real command reports all mistakes of a playbook at once."""

from __future__ import annotations

import pytest

from tests.host.command import statecfg
from tests.unit.playbook.test_all_mistakes import CASES, playbook, project

__all__ = ["project"]


@pytest.mark.parametrize(("suffix", "text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_plan_refuses_all_mistakes_without_connecting(project, suffix: str, text: str, expected: list[str]) -> None:
    ran = statecfg("plan", playbook(project, f"bad.{suffix}", text), cwd=project, code=5)
    assert f"{len(expected)} problems found; no host was changed." in ran.err
    assert not ran.out


SECRETS = {
    "yml": 'hosts: "@local"\nresources: [{user: bob, password_hash: !secret {env: STATECFG_TEST_NOT_SET}}]\n',
    "py": "from statecfg import play, secret\nfrom statecfg.resources import user\n\n"
    "@play(hosts='@local')\ndef p(host):\n"
    "    return user('bob', password_hash=secret('s', env='STATECFG_TEST_NOT_SET'))\n",
    "hy": "(require statecfg.dialects.hy [defplay])\n(import statecfg [secret])\n(import statecfg.resources [user])\n"
    '(defplay p [host] {:hosts "@local"}\n'
    '  (user "bob" {:password-hash (secret "s" :file "/nonexistent/secret")}))\n',
}


@pytest.mark.parametrize("suffix", SECRETS)
def test_plan_needs_secrets_but_validate_does_not(project, suffix: str) -> None:
    path = playbook(project, f"secret.{suffix}", SECRETS[suffix])
    ran = statecfg("validate", path, cwd=project)
    assert "no problems found; missing on this machine and required to plan: " in ran.out
    statecfg("graph", path, cwd=project)
    ran = statecfg("plan", path, cwd=project, code=5)
    assert "error[SC0420]" in ran.err and f"secret.{suffix}:" in ran.err
