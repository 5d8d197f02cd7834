"""The bundle: what travels to hosts is made for the oldest Python there."""

from __future__ import annotations

from pathlib import Path

from tests.host.command import statecfg

NEWER = """\
from statecfg import node_type

@node_type
def modern(path: str) -> None:
    \"\"\"A type that is too modern.\"\"\"

@modern.check
def check(node, world):
    match node.attrs["path"]:
        case _:
            return []
"""


def test_a_node_type_that_hosts_can_not_run_is_refused_before_they_are_asked(tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").write_text("")
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources/modern.py").write_text(NEWER)
    (tmp_path / "play.yml").write_text('hosts: "@local"\nresources:\n  - modern: /x\n')
    for verb in ("validate", "plan"):
        ran = statecfg(verb, "play.yml", cwd=tmp_path, code=5)
        assert "SC0516" in ran.err
        assert "resources/modern.py:11:22" in ran.err
        assert "node types run on hosts: write it for Python 3.8" in ran.err
