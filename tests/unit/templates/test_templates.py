"""Templates: values keep their types, and messages give the positions of mistakes."""

from __future__ import annotations

import pytest

from statecfg import templates
from statecfg.playbook import secrets
from statecfg.problems import InvalidInput, Problem
from statecfg.problems.positions import SourceLocation
from tests.each import each

HERE = SourceLocation("play.yml", 7, 3)


def problem_of(call, *args, **kwargs) -> Problem:
    with pytest.raises(InvalidInput) as caught:
        call(*args, **kwargs)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


@each(
    ("text", "result"),
    [
        ("{{ port }}", 8080),
        ("{{port}}", 8080),
        ("{{ port + 1 }}", 8081),
        ("{{ digits }}", "0755"),
        ("{{ names }}", ["a", "b"]),
        ("{{ table }}", {"k": "v"}),
        ("{{ table.k }}", "v"),
        ("{{ flag }}", True),
        ("{{ nothing }}", None),
        ("{{ names | map('upper') }}", ["A", "B"]),
        ("{{ absent | default(3) }}", 3),
        (" {{ port }}", " 8080"),
        ("p{{ port }}", "p8080"),
        ("{{ port }}{{ port }}", "80808080"),
        ("{{ digits ~ port }}", "07558080"),
        ("{% if flag %}x{% endif %}", "x"),
        ("1{{ digits }}", "10755"),
        ("plain", "plain"),
        ("{not a template}", "{not a template}"),
        ("line\n{{ port }}\n", "line\n8080\n"),
        ("{{ '{{ port }}' }}", "{{ port }}"),
        ("{{ quoted }}", "{{ port }}"),
    ],
)
def test_evaluate_returns_values_with_their_types(text, result):
    variables = {
        "port": 8080,
        "digits": "0755",
        "names": ["a", "b"],
        "table": {"k": "v"},
        "flag": True,
        "nothing": None,
        "quoted": "{{ port }}",
    }
    found = templates.evaluate(text, variables, HERE)
    assert (found, type(found)) == (result, type(result))


def test_expression_returns_a_truth_value_or_a_problem():
    variables = {"port": 80}
    assert templates.expression("port > 79", variables, HERE) is True
    assert templates.expression("{{ port > 80 }}", variables, HERE) is False
    assert problem_of(templates.expression, "port >", variables, HERE).code == "SC0320"
    assert problem_of(templates.expression, "port port", variables, HERE).code == "SC0320"
    assert problem_of(templates.expression, "port = 80", variables, HERE).help == "to compare, write `==`"


@each(
    ("text", "code", "detail", "help_text"),
    [
        ("{{ prot }}", "SC0321", "the variable `prot` is not defined", "did you mean `port`"),
        ("x {{ prot }}", "SC0321", "the variable `prot` is not defined", "did you mean `port`"),
        ("{{ table.kye }}", "SC0321", "no key `kye`", "did you mean `key`"),
        ("{{ prot.x }}", "SC0321", "the variable `prot` is not defined", "`port`"),
        ("{{ [prot] | join }}", "SC0321", "the variable `prot` is not defined", "`port`"),
        ("{% for x in prot %}{% endfor %}", "SC0321", "the variable `prot` is not defined", "`port`"),
        ("{{ table.kye }}", "SC0321", "`table` has no key `kye`", "did you mean `key`"),
        ("{{ {'key': 1}.b }}", "SC0321", "a map has no key `b`", "it has: key"),
        ("{{ port.x }}", "SC0321", "`port` is a number and has no `x`", ""),
        ("{{ table.key.x }}", "SC0321", "`table.key` is a number and has no `x`", ""),
        ("{{ names.x }}", "SC0321", "`names` is a list and has no `x`", ""),
        ("{{ nothing.x }}", "SC0321", "`nothing` is empty and has no `x`", ""),
        ("{{ 'a'.x }}", "SC0321", "a string has no `x`", ""),
        ("{{ q }}", "SC0321", "the variable `q` is not defined", "variables here: names"),
        ("{{ port", "SC0320", "unexpected end", "close `{{` with `}}`"),
        ("{% if port", "SC0320", "unexpected end", "close `{%` with `%}`"),
        ("{# port", "SC0320", "end of comment", "close `{#` with `#}`"),
        ("{{ port = 3 }}", "SC0320", "got '='", "to compare, write `==`"),
        ("{% iff port %}", "SC0320", "unknown tag", "a tag of Jinja"),
        ("{% if port %}", "SC0320", "", "{% end"),
        ("{{ port | uper }}", "SC0320", "uper", "did you mean `upper`"),
        ("x{{ none }}", "SC0322", "None", "default"),
        ("x{{ table }}", "SC0322", "a map", "tojson"),
        ("{{ 1 / 0 }}", "SC0322", "ZeroDivisionError", ""),
        ("{{ ''.__class__.__mro__ }}", "SC0322", "unsafe", ""),
        ("{{ names.append(1) }}", "SC0322", "unsafe", ""),
        ("{% include 'x.j2' %}", "SC0301", "x.j2", "templates/"),
        ("{% include '/etc/passwd' %}", "SC0322", "outside", ""),
        ("{% include '../../etc/passwd' %}", "SC0322", "outside", ""),
        ("{{ lipsum() }}", "SC0321", "lipsum", ""),
        ("{{ names | random }}", "SC0320", "random", ""),
    ],
)
def test_evaluate_reports_mistakes_with_place_and_help(text, code, detail, help_text):
    found = problem_of(templates.evaluate, text, {"port": 80, "table": {"key": 1}, "names": [], "nothing": None}, HERE)
    assert (found.code, found.locations[-1]) == (code, HERE)
    assert detail in found.detail
    assert help_text in found.help


def test_problem_in_a_block_names_the_line_of_the_mistake():
    found = problem_of(templates.evaluate, "one\ntwo {{ x }}\n", {}, HERE, block=True)
    assert str(found.locations[0]) == "play.yml:9"


def test_render_file_includes_templates_and_places_problems(tmp_path):
    (tmp_path / "templates").mkdir()
    (tmp_path / "play").mkdir()
    site = tmp_path / "play" / "site.j2"
    site.write_text("a\n{% include 'part.j2' %}\n{% for n in names %}\n  {{ n }}\n{% endfor %}\nend\n")
    (tmp_path / "templates" / "part.j2").write_text("part {{ port }}\n")
    given = {"port": 80, "names": [1, 2]}
    assert templates.render_file(site, given, HERE, tmp_path) == "a\npart 80\n  1\n  2\nend\n"
    found = problem_of(templates.render_file, site, {"names": []}, HERE, tmp_path)
    assert [str(place) for place in found.locations] == [f"{tmp_path}/templates/part.j2:1", str(HERE)]
    (tmp_path / "templates" / "part.j2").write_text("\n\n{{ x")
    found = problem_of(templates.render_file, site, given, HERE, tmp_path)
    assert [str(place) for place in found.locations] == [f"{tmp_path}/templates/part.j2:3", str(HERE)]


def test_render_file_refuses_a_cycle_of_includes(tmp_path):
    (tmp_path / "a.j2").write_text("{% include 'b.j2' %}")
    (tmp_path / "b.j2").write_text("{% include 'a.j2' %}")
    found = problem_of(templates.render_file, tmp_path / "a.j2", {}, HERE)
    assert found.code == "SC0317"
    assert "a.j2 → b.j2 → a.j2" in found.detail
    assert [str(place) for place in found.locations] == [f"{tmp_path}/a.j2:1", str(HERE)]


def test_a_recursion_names_the_line_that_begins_it(tmp_path):
    (tmp_path / "a.j2").write_text("{% macro m(n) %}\n{{ m(n + 1) }}\n{% endmacro %}\n{{ m(0) }}\n")
    found = problem_of(templates.render_file, tmp_path / "a.j2", {}, HERE)
    assert found.code == "SC0323"
    assert [str(place) for place in found.locations] == [f"{tmp_path}/a.j2:4", str(HERE)]


def test_render_file_refuses_a_file_that_is_not_utf8(tmp_path):
    (tmp_path / "a.j2").write_bytes(b"x\ncaf\xe9")
    found = problem_of(templates.render_file, tmp_path / "a.j2", {}, HERE)
    assert (found.code, found.locations[0].line) == ("SC0313", 2)


def test_templates_use_secret_values_and_record_them(monkeypatch):
    monkeypatch.setenv("PW", "s3cret-value")
    hidden = secrets.secret("pw", env="PW")
    with secrets.recording() as used:
        assert templates.evaluate("{{ pw }}", {"pw": hidden}, HERE) is hidden
        assert used == {}
        for text, result in (
            ("p={{ pw }}", "p=s3cret-value"),
            ("{{ 'p=' ~ pw }}", "p=s3cret-value"),
            ("{{ 'p=' + pw }}", "p=s3cret-value"),
            ("{{ pw | upper }}", "S3CRET-VALUE"),
            ("{{ [pw, 'x'] | join(',') }}", "s3cret-value,x"),
            ("{{ 'p=%s' % pw }}", "p=s3cret-value"),
            ("{{ '{}'.format(pw) }}", "s3cret-value"),
            ("{% for w in [pw] %}{{ w }}{% endfor %}", "s3cret-value"),
            ("{{ {'a': pw} | tojson }}", '{"a": "s3cret-value"}'),
        ):
            assert templates.evaluate(text, {"pw": hidden}, HERE) == result
    assert list(used) == ["pw"]
    found = problem_of(templates.evaluate, "{{ pw | int(base=99) }}.{{ (pw ~ '').x }}", {"pw": hidden}, HERE)
    assert "s3cret" not in str(found)
