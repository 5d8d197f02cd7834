"""The validate command warns of names that look like others."""

from __future__ import annotations

from pathlib import Path

from tests.host.command import statecfg


def test_validate_warns_of_lookalike_characters(tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").write_text("")
    playbook = tmp_path / "p.yml"
    text = "hosts: '@local'\nresources:\n  - file: \"/etc/p\u0430sswd\"\n    content: x\n"
    playbook.write_text(text, encoding="utf-8")
    done = statecfg("validate", playbook, cwd=tmp_path)
    assert "warning: p.yml:3:5: file:/etc/p\u0430sswd: the word" in done.err.replace(f"{tmp_path}/", "")
    assert "U+0430 (CYRILLIC SMALL LETTER A)" in done.err
