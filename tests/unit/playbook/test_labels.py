"""Merges and references mean the same in playbooks in Python and Hy as in YAML."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from statecfg.problems import InvalidInput
from statecfg.run import prepare

PYTHON = """\
from statecfg import label, play
from statecfg.resources import file, package, service

@play(hosts="all")
def web(host):
    with label("sites"):
        sites = [file(f"/srv/{name}", content="", tags=["site"]) for name in ("a", "b")]
    with label("none"):
        none = []
    return [
        package("nginx"),
        package("nginx", tags=["web"]),
        *sites,
        service("nginx", running=True, restart_on=["loop:sites"], requires=["package:*", "loop:none"]),
        service("cron", running=True, requires=["tag:web", "file:/srv/**"]),
    ]
"""
HY = """\
(require statecfg.dialects.hy [defplay])
(import statecfg [label])
(import statecfg.resources [file package service])

(defplay web [host] {:hosts "all"}
  (with [_ (label "sites")]
    (setv sites (lfor name ["a" "b"] (file f"/srv/{name}" {:content "" :tags ["site"]}))))
  (with [_ (label "none")] (setv none []))
  [(package "nginx")
   (package "nginx" {:tags ["web"]})
   sites none
   (service "nginx" {:running True :restart-on [:loop:sites] :requires ["package:*" :loop:none]})
   (service "cron" {:running True :requires [:tag:web "file:/srv/**"]})])
"""
YAML = """\
hosts: all
resources:
  - package: nginx
  - package: nginx
    tags: [web]
  - file: "/srv/{{ item }}"
    content: ""
    tags: [site]
    for_each: [a, b]
    label: sites
  - {package: "{{ item }}", for_each: [], label: none}
  - {service: nginx, running: true, restart_on: [loop:sites], requires: ["package:*", loop:none]}
  - {service: cron, running: true, requires: [tag:web, "file:/srv/**"]}
"""
DIALECTS = {"py": PYTHON, "hy": HY, "yml": YAML}


def work(project: Path, suffix: str, text: str) -> prepare.Work:
    (project / "inventory.yml").write_text("hosts: [h1]\n")
    path = project / f"site.{suffix}"
    path.write_text(textwrap.dedent(text))
    return prepare.playbook(path, prepare.Choice())


@pytest.mark.parametrize("suffix", DIALECTS)
def test_dialects_make_the_same_graph(tmp_path: Path, suffix: str) -> None:
    (job,) = work(tmp_path, suffix, DIALECTS[suffix]).jobs
    found = {node["provides"]: node for layer in job.definition.layers for node in layer}
    assert found["service:nginx"]["requires"] == ["package:nginx", "file:/srv/a", "file:/srv/b"]
    assert found["service:nginx"]["triggers"] == ["file:/srv/a", "file:/srv/b"]
    assert found["service:cron"]["requires"] == ["package:nginx", "file:/srv/a", "file:/srv/b"]
    assert found["package:nginx"]["options"] == {"tags": ["web"]} and len(found["package:nginx"]["also"]) == 1


@pytest.mark.parametrize("suffix", DIALECTS)
def test_dialects_report_references_without_a_match(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        work(tmp_path, suffix, DIALECTS[suffix].replace("tag:web", "tag:wbe"))
    (found,) = caught.value.problems
    assert (found.code, found.help) == ("SC0111", "did you mean `tag:web`? (also valid: tag:site)")


def test_declaration_that_a_play_does_not_return_is_reported_although_an_equal_one_is(tmp_path: Path) -> None:
    text = PYTHON.replace("    return [", '    package("nginx")\n    return [')
    with pytest.raises(InvalidInput) as caught:
        work(tmp_path, "py", text)
    assert [(item.code, item.locations[0].line) for item in caught.value.problems] == [("SC0511", 10)]
