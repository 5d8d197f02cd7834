"""Plans, reports and `verify` name what happens with the verbs of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.host.run.site import Site
from tests.lab import Host

PLAYBOOK = """
- hosts: all
  resources:
  - file: /srv/verbs/conf
    content: "{word}\\n"
    requires: [directory:/srv/verbs]
  - directory: /srv/verbs
  - process: /usr/bin/sleep
    args: ["1000"]
    user: root
    group: root
    env: {{}}
    restart_on: [file:/srv/verbs/conf]
  - command: each-time
    argv: ["true"]
    always: true
  - file: /srv/verbs/after
    content: "after\\n"
    requires: [command:each-time]
  - command: after-a-change
    argv: ["true"]
    effects: {{}}
    restart_on: [file:/srv/verbs/conf]
  - wait_for: shell
    path: /bin/sh
  - ssh_key: /srv/verbs/id
    requires: [directory:/srv/verbs]
  - directory: /srv/verbs/purged
    provides: purged
    purge: true
"""


@pytest.fixture
def site(tmp_path: Path, light_host: Host) -> Site:
    return Site(tmp_path, light_host, "verbs")


def play(site: Site, word: str, more: str = "") -> None:
    (site.base / "site.yml").write_text(PLAYBOOK.format(word=word) + more)


def test_reports_use_the_verbs_of_the_user(site: Site, light_host: Host) -> None:
    play(site, "one")
    planned = site("plan", "site.yml").out
    assert "  + ssh_key:/srv/verbs/id  create_pair" in planned
    assert "          text  a new ed25519 key\n" in planned
    done = site("apply", "site.yml", "--yes").out
    assert "  ✓ command:each-time  run\n" in done
    assert site("verify", "site.yml").out.endswith("Drift: 0 changed on the host, 0 in the definition, 9 as defined.\n")

    light_host.write("/srv/verbs/purged/other", "")
    play(site, "two")
    planned = site("plan", "site.yml").out
    assert "  ~ process:/usr/bin/sleep  ensure-running" in planned
    assert "  ~ purged  remove" in planned
    assert "      - /srv/verbs/purged/other\n" in planned
    assert planned.endswith(" to change, 0 to destroy.\n")
    done = site("apply", "site.yml", "--yes", "--markdown-into", "report.md").out
    assert "  ✓ process:/usr/bin/sleep  restarted\n" in done
    assert "  ✓ command:after-a-change  run\n" in done
    assert "  ✓ purged  changed\n" in done
    assert " 0 destroyed" in done
    assert "0 destroyed" in (site.base / "report.md").read_text()


@pytest.mark.parametrize("cause", ["definition", "trigger", "host"])
def test_verify_skips_only_what_can_not_drift(site: Site, light_host: Host, cause: str) -> None:
    play(site, "one")
    site("apply", "site.yml", "--yes")

    def drift() -> dict[str, Any]:
        layers = site.report("verify", "site.yml", code=2)["layers"]
        return {node["name"]: node["drift"] for layer in layers for node in layer if node.get("drift")}

    if cause == "definition":
        text = PLAYBOOK.format(word="one").replace('argv: ["true"]\n    always', 'argv: ["/bin/true"]\n    always')
        (site.base / "site.yml").write_text(text)
        assert drift()["command:each-time"] == ["definition"]
    elif cause == "trigger":
        play(site, "two")
        assert set(drift()) == {"file:/srv/verbs/conf", "process:/usr/bin/sleep", "command:after-a-change"}
    else:
        light_host.write("/srv/verbs/after", "by hand\n")
        assert drift() == {"file:/srv/verbs/after": ["host"]}
