"""statecfg stops templates that run too long or use too much memory."""

from __future__ import annotations

import time

import pytest

from statecfg import templates
from tests.unit.templates.test_templates import HERE, problem_of


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{{ 'x' * 10 ** 9 }}",
        "{{ [0] * 10 ** 9 }}",
        "{{ 10 ** (10 ** 8) }}",
        "{{ 'x'.ljust(10 ** 9) }}",
        "{{ 'x' | center(10 ** 9) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{% set n = namespace(s='x') %}{% for i in range(64) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
        "{% set n = namespace(s='x') %}{% for i in range(64) %}{% set n.s = n.s + n.s %}{% endfor %}",
        "{% for i in range(9999) %}{{ 'x' * 9999 }}{% endfor %}",
    ],
)
def test_endless_template_is_stopped_with_a_problem(text):
    start = time.monotonic()
    assert problem_of(templates.evaluate, text + ".", {}, HERE).code == "SC0323"
    assert time.monotonic() - start < 60
