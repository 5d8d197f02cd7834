"""Hosts whose templates read equal inputs share one evaluation, wherever a playbook has the templates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.run.test_shared import ALL, ALONE, PORT, groups_of, project, written

__all__ = ["project"]

TEMPLATES = {
    "x": ALL,
    "{{ shared }}": ALL,
    "{{ port }}": PORT,
    "{{ own }}": PORT,
    "{{ options | tojson }}": "web1 web3 | web2",
    "{{ extra | default(1) }}": PORT,
    "{{ extra is defined | string }}": PORT,
    "{{ host.name }}": ALONE,
    "{{ host['name'] }}": ALONE,
    "{{ host.get('name') }}": ALONE,
    "{{ host | length }}": ALL,
    "{{ host.groups | length }}": PORT,
    "{% set port = 1 %}{{ shared }}": ALL,
    "{% for one in groups.web %}{{ one.vars.port }}{% endfor %}": ALL,
}


@pytest.mark.parametrize("place", ["content", "template", "when", "for_each", "include"])
@pytest.mark.parametrize("text", TEMPLATES)
def test_yaml_shares_what_reads_equal_inputs(project: Path, text: str, place: str) -> None:
    (project / "templates").mkdir()
    (project / "templates/a.j2").write_text(text)
    (project / "part.yml").write_text("resources: [{file: /etc/b, content: '{{ given }}'}]\n")
    bare = text.strip("{} ") if text.startswith("{{") else "true"
    quoted = json.dumps(text)
    node = {
        "content": f"file: /etc/a, content: {quoted}",
        "template": "file: /etc/a, template: a.j2",
        "when": f"file: /etc/a, content: x, when: {json.dumps(f'({bare}) | string != 1')}",
        "for_each": f'file: "/etc/{{{{ loop.index }}}}", content: x, for_each: {json.dumps(f"[({bare}) | string]")}',
        "include": f"include: part.yml, vars: {{given: {quoted}}}",
    }[place]
    path = written(project, f"hosts: web\nvars: {{own: '{{{{ port }}}}'}}\nresources: [{{{node}}}]\n", "yml")
    expected = TEMPLATES[text] if text.startswith("{{") or place not in ("when", "for_each") else ALL
    # The variable of the play reads `port` for every host, whether the play uses it or not.
    assert groups_of(path) == {ALL: PORT, "web1 web3 | web2": ALONE}.get(expected, expected)
