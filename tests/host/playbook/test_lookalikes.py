"""The validate command warns of names that look like others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.host.command import statecfg


@pytest.mark.parametrize(
    ("path", "shown", "said"),
    [
        ("/etc/p\u0430sswd", "/etc/p\u0430sswd", "mixes Latin letters with U+0430 (CYRILLIC SMALL LETTER A)"),
        ("/etc/\u202efdp.exe", "/etc/\\u202efdp.exe", "U+202E (RIGHT-TO-LEFT OVERRIDE) changes the direction"),
        ("/etc/\u2066a\u2069", "/etc/\\u2066a\\u2069", "U+2066 (LEFT-TO-RIGHT ISOLATE) changes the direction"),
    ],
    ids=["letter", "override", "isolate"],
)
def test_validate_warns_of_lookalike_characters(tmp_path: Path, path: str, shown: str, said: str) -> None:
    (tmp_path / "statecfg.toml").write_text("")
    playbook = tmp_path / "p.yml"
    text = f"hosts: '@local'\nresources:\n  - file: \"{path}\"\n    content: x\n"
    playbook.write_text(text, encoding="utf-8")
    done = statecfg("validate", playbook, cwd=tmp_path)
    assert f"warning: p.yml:3:5: file:{shown}: " in done.err.replace(f"{tmp_path}/", "") and said in done.err
    assert not {*path} & {*"\u202e\u2066"} & {*done.out + done.err}
