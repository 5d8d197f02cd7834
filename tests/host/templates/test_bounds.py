"""Templates that grow or loop end with an error that names their line: within 5 seconds of work and 256 MB."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from bench.figures import loop
from statecfg import templates
from statecfg.problems import InvalidInput
from statecfg.problems.positions import SourceLocation

HERE = SourceLocation("play.yml", 7, 3)
MOST = 256 << 20
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 10)
)
MERGES = "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 10))
GROWING = [
    "{{ (['a'] * 9999999) | to_yaml | length }}",
    "{{ (['a'] * 16000000) | map('upper') | list | length }}",
    "{{ bomb | from_yaml | to_yaml | length }}",
    "{{ bomb | from_yaml | to_json | length }}",
    "{{ merges | from_yaml | length }}",
    "{{ bomb | from_yaml_all | string | length }}",
    "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x | length }}",
    "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}{{ n.x | length }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}{{ n.x | length }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x | string }}",
    "{% set n = namespace(x=1) %}{% for i in range(60) %}"
    "{% set n.x = {'a': n.x, 'b': n.x} %}{% endfor %}{{ n.x ~ '' }}",
    "{% set n = namespace(x=1) %}{% for i in range(60) %}{% set n.x = (n.x, n.x) %}{% endfor %}{{ '%s' % (n.x,) }}",
    "{% set n = namespace(x=1) %}{% for i in range(60) %}"
    "{% set n.x = namespace(a=[n.x, n.x]) %}{% endfor %}{{ n.x ~ '' }}",
    "{{ '{0:{1}}'.format('a', 2000000000) }}",
    "{{ ('{0:>999999}' * 10000).format('a') | length }}",
    "{{ ('%999999d' * 10000) % ((1,) * 10000) }}",
    "{{ ('%(a)s' * 100000) % {'a': 'x' * 1000000} }}",
    "{{ '%*d' % (2000000000, 1) }}",
    "{{ 'a' | center(2000000000) }}",
    "{{ ('\\t' * 1000000).expandtabs(1000000) | length }}",
    "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) | length }}",
    "{{ ('a' * 1000000).replace('a', 'b' * 1000000) | length }}",
    "{{ ('x' * 1000000).join(['a'] * 100000) | length }}",
    "{{ (['a'] * 100000) | join('x' * 1000000) | length }}",
    "{{ (['a'] * 100000) | map('center', 1000000) | join | length }}",
    "{{ ('a' * 1000000) | regex_replace('a', 'b' * 1000000) | length }}",
    "{{ ('a' * 16000000) | regex_findall('a') | length }}",
    "{{ ('a' * 16000000) | list | length }}",
    "{{ ('a,' * 8000000).split(',') | length }}",
    "{{ ('\\n' * 1000000) | indent(1000000) | length }}",
    "{{ [[[1] * 1000] * 100] | to_nice_json(indent=1000000) | length }}",
    "{{ 10 ** 100000000 }}",
    "{{ 1 | round(2000000000, 'ceil') }}",
    "{{ 5 | round(-2000000000) }}",
    "{{ (1).to_bytes(2000000000, 'big') | length }}",
    "{{ (1).from_bytes(('a' * 16000000).encode(), 'big') % 7 }}",
    "{{ range(100000) | batch(2000000000, 'x') | list | length }}",
    "{{ range(100000) | permutations | length }}",
    "{{ [1, 2] | product(repeat=100000) | length }}",
    "{{ [[1] * 100000, []] | product([1] * 100000) | length }}",
    "{{ ([[1]] * 200000) | sum(start=[]) | length }}",
    "{{ ('1.' * 8000000) is version('1', '>') }}",
    "{{ '%c' | replace('%c', '%c' * 1000000) | strftime(0) }}",
    "{{ ('[1],' * 4000000) | from_json }}",
    "{{ ('a b ' * 4000000) | wordwrap(1, wrapstring='x' * 1000) | length }}",
    "{{ ('www.a.de ' * 100000) | urlize(target='x' * 10000) | length }}",
    "{{ ('a' * 1000000).translate({97: 'b' * 100000}) | length }}",
    "{{ (['a' * 40] * 400000) | pprint | length }}{{ (['a' * 40] * 400000) | pprint | length }}",
    "{% set x %}{% for i in range(100000) %}"
    "{% for j in range(100000) %}aaaaaaaaaaaaaaaaaaaa{% endfor %}{% endfor %}{% endset %}",
    "{% set a = 'x' * 16000000 %}{% set b %}"
    "{% for i in range(100000) %}{{ a }}{% endfor %}{% endset %}{{ b | length }}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "{{ ('a' * 60 ~ 'b') is match('(?:a|aa)+$') }}",
    "{{ range(1000) | permutations(3) | length }}",
    "{{ ('[' * 100000) | from_json }}",
    "{{ ('[' * 100000) | from_yaml }}",
    "{{ ('- a\\n' * 4000000) | from_yaml | length }}",
    "{{ range(100000) | map('string') | map('center', 1000) | list | length }}",
    "{% set n = namespace(d={}) %}{% for i in range(100000) %}{% set n.d = n.d | combine({i: i}) %}{% endfor %}",
    "{{ range(30000) | batch(1) | list | difference(range(30000) | batch(1) | list) | length }}",
]


def in_child(text: str, project: Path) -> tuple[int, float]:
    """Render a template in a process of its own; return its exit code and the seconds of work."""
    (project / "t.j2").write_text(f"first line\n{text}\n")
    child = os.fork()
    if child == 0:
        code = 3
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + MOST
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
            try:
                templates.render_file(project / "t.j2", {"bomb": BOMB, "merges": MERGES}, HERE)
            except InvalidInput as error:
                (found,) = error.problems
                right = found.code in ("SC0322", "SC0323") and str(found.locations[0]).endswith("t.j2:2")
                code = 0 if right and "Error:" not in found.detail and "too much memory" not in found.detail else 1
                if code:
                    os.write(2, f"{found}\n".encode())
            except BaseException as error:
                os.write(2, f"{type(error)}\n".encode())
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("number", range(len(GROWING)))
def test_a_template_that_grows_or_loops_ends_with_its_line(number: int, tmp_path: Path) -> None:
    templates.render_file.__module__  # noqa: B018  # loads Jinja2 before the process is copied
    before = loop()
    code, seconds = in_child(GROWING[number], tmp_path)
    # A busy or slow machine must not fail the test: 5 seconds are about 75 loops of the benchmarks.
    assert (code, seconds < max(5, 75 * max(before, loop()))) == (0, True), (GROWING[number], seconds)
