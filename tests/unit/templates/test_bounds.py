"""Values far below the limits of templates stay possible."""

from __future__ import annotations

from statecfg import templates
from statecfg.problems.positions import SourceLocation
from tests.each import each

HERE = SourceLocation("play.yml", 7, 3)


@each(
    ("text", "result"),
    [
        ("{{ (['a'] * 20000) | map('upper') | join(',') | length }}", "39999"),
        ("{{ range(10000) | list | to_yaml | length }}", "60297"),
        ("{{ ('a' * 1000000) | replace('a', 'bb') | length }}", "2000000"),
        ("{{ ('a b\n' * 20000) | indent(8) | length }}", "239992"),
        (
            "{% set n = namespace(x=[]) %}{% for i in range(3000) %}{% set n.x = n.x + [i] %}{% endfor %}{{ n.x[-1] }}",
            "2999",
        ),
        ("{{ '%05.1f %s %%' % (3.14159, [1, 2]) }}", "003.1 [1, 2] %"),
        ("{{ '{:>{}}|{}'.format('a', 5, {'b': 1}) }}", "    a|{'b': 1}"),
        ("{{ 'a: &x [1]\nb: *x' | from_yaml | to_json }}", '{"a": [1], "b": [1]}'),
        ("{{ 'a: &x {k: 1}\nb: {<<: *x}' | from_yaml | to_json }}", '{"a": {"k": 1}, "b": {"k": 1}}'),
        ("{{ ('abab' * 50000) | regex_replace('(a)(b)', '\\\\2\\\\1') | length }}", "200000"),
        ("{{ ('a1' * 100000) | regex_findall('([a-z])([0-9])') | first | join }}", "a1"),
        ("{{ 2 ** 1000 % 97 }}", "36"),
        ("{{ [1, 2] | product(['a', 'b']) | map('join') | join(' ') }}", "1a 1b 2a 2b"),
    ],
)
def test_large_and_ordinary_values_stay_possible(text, result):
    assert templates.render_text(text, {}, HERE) == result
