"""The usual ways in which Hy reads hosts, facts, variables and groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecfg.problems import InvalidInput
from statecfg.run import prepare
from statecfg.run.choice import KnownFacts
from tests.each import each
from tests.unit.facts.test_definitions import awaited, contents, recorded

INVENTORY = """\
hosts:
  web1: {address: 192.0.2.1, vars: {port: 81, log_size: 5}}
  db1: {address: 192.0.2.9, vars: {port: 5432}}
groups:
  db: {hosts: [db1]}
"""
PLAY = """\
(require statecfg.dialects.hy [defplay])
(import statecfg [groups hosts])
(import statecfg.resources [file])

(defplay web [host] {:hosts "web1"}
  [%s])
"""
FILE = '(file "/etc/%d" :content (str %s))'

FACTS: dict[str, Any] = {"hostname": "w", "ipv4": "192.0.2.9", "packages": {"nginx": {"version": "1.22"}}}


def prepared(directory: Path, *forms: str) -> prepare.Work:
    """Prepare a play with a file for each form, whose content is the value of the form."""
    files = "\n   ".join(FILE % (number, form) for number, form in enumerate(forms))
    (directory / "inventory.yml").write_text(INVENTORY)
    (directory / "play.hy").write_text(PLAY % files)
    stored = {"db1": recorded(FACTS)}
    return prepare.playbook(directory / "play.hy", prepare.Choice(known=KnownFacts(stored=lambda: stored)))


FORMS = {
    "(:name host)": "web1",
    '(get host "name")': "web1",
    "(get host :name)": "web1",
    "host.name": "web1",
    '(in "name" host)': "True",
    "(in :nope host)": "False",
    "(:nope host 3)": "3",
    "(:port (:vars host))": "81",
    "(:log-size host.vars)": "5",
    "(:nope host.vars 3)": "3",
    "(in :port host.vars)": "True",
    "(:hostname (:facts host))": "w",
    "(in :hostname host.facts)": "True",
    "(in :hostnam host.facts)": "False",
    "(:version (:nginx (:packages (:facts host))))": "1.22",
    '(get host.facts.packages "nginx" "version")': "1.22",
    "(:apache2 host.facts.packages)": "None",
    "(:groups (:db1 hosts))": "('db',)",
    "(:name (:db1 hosts))": "db1",
    "(:address hosts.db1)": "192.0.2.9",
    '(get (get hosts "db1") "address")': "192.0.2.9",
    "(:ipv4 (:facts (:db1 hosts)))": "192.0.2.9",
    "(:port (:vars (get groups.db 0)))": "5432",
    "(in :address hosts.db1)": "True",
    "(:nope hosts.db1 3)": "3",
    "(get (:db groups) 0)": "db1",
    '(in "db1" (:db groups))': "True",
    "(in :db groups)": "True",
    "(:nope groups 3)": "3",
    # As text, a host is its name.
    '(in "b1" hosts.db1)': "True",
    "(cut hosts.db1 0 2)": "db",
}


def test_every_form_of_hy_reads_hosts_facts_and_variables(tmp_path: Path) -> None:
    waiting = awaited(prepared(tmp_path, *FORMS))
    assert waiting.add("web1", FACTS) == {}
    job = waiting.finish()["web1"]
    values = contents(job)
    assert {form: values[f"file:/etc/{number}"] for number, form in enumerate(FORMS)} == FORMS


@each(
    ("form", "code", "detail", "help"),
    [
        ("(:nmae host)", "SC0504", "a host has no `nmae`", "name"),
        ('(get host "nmae")', "SC0504", "a host has no `nmae`", "name"),
        ("(:adress hosts.db1)", "SC0504", "a host has no `adress`", "address"),
        ("(:prot host.vars)", "SC0514", "the variable prot is not defined", "port"),
        ("(:hostnam host.facts)", "SC0520", "a host has no fact `hostnam`", "hostname"),
        ("(:db2 hosts)", "SC0404", "the inventory has no host `db2`", "db1"),
        ("(:dbs groups)", "SC0404", "no group `dbs`", ""),
    ],
)
def test_hy_reports_a_name_that_does_not_exist(tmp_path: Path, form: str, code: str, detail: str, help: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        prepared(tmp_path, form)
    (problem,) = caught.value.problems
    assert (problem.code, problem.locations[0].line) == (code, 6)
    assert detail in problem.detail and help in problem.help
