"""The lines of templates: every line break stays, except that of a line with nothing but blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecfg import templates
from statecfg.problems import InvalidInput
from statecfg.problems.positions import SourceLocation
from tests.each import each

HERE = SourceLocation("play.yml", 7, 3)


def rendered(text: str) -> str:
    return templates.render_text(text, {"yes": True, "no": False, "x": "X"}, HERE)


@each(
    ("text", "result"),
    [
        ("ann {% if yes %}NOPASSWD: ALL{% endif %}\n", "ann NOPASSWD: ALL\n"),
        ("ann{% if yes %} x{% endif %}\n[b]\n", "ann x\n[b]\n"),
        ("a{% if yes %}\nb\n{% endif %}\nc\n", "a\nb\nc\n"),
        ("t {% if no %}a\n{% else %}b\n{% endif %} z\n", "t b\n z\n"),
        ("x {# note #}\ny\n", "x \ny\n"),
        ("{{ x }}{% if no %}z{% endif %}\n", "X\n"),
        ("    {% if yes %}a{% endif %}\n", "    a\n"),
        ("{% raw %}{{ x }}{% endraw %}\ny", "{{ x }}\ny"),
        ("{% if no %}a{% endif %}\nb", "\nb"),
    ],
)
def test_a_line_with_text_keeps_its_line_break(text, result):
    assert rendered(text) == result


@each(
    ("text", "result"),
    [
        ("  {% if yes %}\n  x\n  {% endif %}\ny\n", "  x\ny\n"),
        ("{# note #}\ny\n", "y\n"),
        ("{% set a = 1 %} {% set b = 2 %}\n{{ a }}\n", "1\n"),
        ("{% set a = [\n  1,\n] %}\n{{ a | join }}\n", "1\n"),
        ("{% if yes %}  \nx{% endif %}", "x"),
        ("{% macro m(a) %}<{{ a }}>{% endmacro %}\n{{ m(1) }}\n", "<1>\n"),
        ("{% set a %}x\ny{% endset %}\n{{ a }}\n", "x\ny\n"),
        ("{% if yes %} {% set b = 1 %} {% endif %}\nx", "x"),
        ("x\n  {%- if yes %}\ny\n{% endif %}\n", "xy\n"),
        ("{% if yes -%}\n  x\n{%- endif %}\ny\n", "xy\n"),
        ("  {%+ if yes %}\nx{% endif %}", "  x"),
        ("{% if yes +%}\nx{% endif %}", "\nx"),
        ("{% raw %}\nx\n{% endraw %}\ny", "\nx\ny"),
        ("\ufeff{% if yes %}\nx\n{% endif %}\n", "\ufeffx\n"),
    ],
)
def test_a_line_with_nothing_but_blocks_leaves_nothing(text, result):
    assert rendered(text) == result


@each(
    ("text", "result"),
    [
        ("a\r\n{{ x }}\r\n", "a\r\nX\r\n"),
        ("a\r\nb\n\rc\r{{ x }}\r", "a\r\nb\n\rc\rX\r"),
        ("{% if yes %}\r\nb\r\n{% endif %}\r\nc\n", "b\r\nc\n"),
        ("a {% if yes %}b{% endif %}\r\n", "a b\r\n"),
        ("{% set a = [\r\n 1 ] %}\r\n{{ a | join }}\r\n", "1\r\n"),
        ("{{ 'a\r\nb' }}\n", "a\r\nb\n"),
        ("\x1d\x1e\r\n{{ x }}\x1f", "\x1d\x1e\r\nX\x1f"),
    ],
)
def test_the_line_ends_of_the_text_stay(text, result):
    assert rendered(text) == result
    assert templates.evaluate(text, {"x": "X", "yes": True}, HERE) == result


def test_line_ends_of_template_files_stay_and_errors_name_the_line(tmp_path):
    (tmp_path / "a.j2").write_bytes(b"a\r\n{% include 'b.j2' %}\r\nc\r\n")
    (tmp_path / "b.j2").write_bytes(b"b\r\n")
    assert templates.render_file(tmp_path / "a.j2", {}, HERE) == "a\r\nb\r\nc\r\n"
    (tmp_path / "b.j2").write_bytes(b"b\r\n\r\n{{ y }}\r\n")
    with pytest.raises(InvalidInput) as caught:
        templates.render_file(tmp_path / "a.j2", {}, HERE)
    assert str(caught.value.problems[0].locations[0]) == f"{tmp_path}/b.j2:3"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key").write_text("PRIVATE\n")
    project = tmp_path / "project"
    (project / "templates" / "sub").mkdir(parents=True)
    (project / "templates" / "real.j2").write_text("real\n")
    (project / "templates" / "near.j2").symlink_to("real.j2")
    (project / "templates" / "link.j2").symlink_to("../../outside/key")
    (project / "templates" / "chain.j2").symlink_to("link.j2")
    (project / "templates" / "out").symlink_to(tmp_path / "outside")
    return project


@each(
    "written",
    [
        "{% include 'link.j2' %}",
        "{% include 'chain.j2' %}",
        "{% include 'out/key' %}",
        "{% include ['none', 'link.j2'] ignore missing %}",
        "{% import 'link.j2' as x %}",
        "{% from 'link.j2' import x %}",
        "{% extends 'link.j2' %}",
        "{% include 'sub/../../../outside/key' %}",
        "{% include './link.j2' %}",
    ],
)
def test_a_template_includes_nothing_outside_the_project(written, project):
    main = project / "main.j2"
    main.write_text(f"a\n{written}\n")
    with pytest.raises(InvalidInput) as caught:
        templates.render_file(main, {}, HERE, project)
    (found,) = caught.value.problems
    assert (found.code, "outside the project" in found.detail) == ("SC0322", True)
    assert str(found.locations[0]) == f"{main}:2"
    assert "PRIVATE" not in str(found)


def test_a_template_that_becomes_a_link_is_refused(project):
    main, part = project / "main.j2", project / "part.j2"
    main.write_text("{% include 'part.j2' %}{% include 'near.j2' %}")
    part.write_text("PRIVATE\n")
    assert templates.render_file(main, {}, HERE, project) == "PRIVATE\nreal\n"
    part.unlink()
    part.symlink_to("../outside/key")
    with pytest.raises(InvalidInput, match="outside the project"):
        templates.render_file(main, {}, HERE, project)


def test_a_template_elsewhere_includes_what_is_beside_it(project):
    outside = project.parent / "outside"
    (outside / "main.j2").write_text("{% include 'key' %}{% include 'real.j2' %}")
    assert templates.render_file(outside / "main.j2", {}, HERE, project) == "PRIVATE\nreal\n"
    (outside / "passwd").symlink_to("/etc/passwd")
    (outside / "main.j2").write_text("{% include 'passwd' %}")
    with pytest.raises(InvalidInput, match="outside the project"):
        templates.render_file(outside / "main.j2", {}, HERE, project)


def test_a_role_includes_nothing_outside_the_project(project):
    role = project / "roles" / "r"
    (role / "templates").mkdir(parents=True)
    (role / "templates" / "part.j2").symlink_to("../../../../outside/key")
    (role / "templates" / "main.j2").write_text("{% include 'real.j2' %}{% include 'part.j2' %}")
    with pytest.raises(InvalidInput, match=r"part\.j2"):
        templates.render_file(role / "templates" / "main.j2", {}, HERE, project, str(role / "templates"), "ansible")
