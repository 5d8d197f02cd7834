"""A run with `--tags` leaves out nodes that react to its changes: the reaction stays owed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.host.run.site import Site
from tests.lab import Host

FACT = 'content=f"{host.facts.hostname} NEW\\n"'


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Site:
    return Site(tmp_path, light_host, place.rpartition("/")[2])


def restart(place: str, *causes: str, more: str = "") -> str:
    """Return a command that runs only after a change, and leaves a line each time."""
    return f"command('restart', shell='echo ran >> {place}.ran', restart_on={list(causes)}, effects={{}}{more})"


def define(site: Site, place: str, text: str, *more: str, content: str = "") -> None:
    conf = f"file('{place}.conf', {content or f'content={text!r}'}, tags=['conf'], provides='conf')"
    site.play(conf, *more)


def ran(host: Host, place: str) -> int:
    """Return the number of runs of the command."""
    path = host.path(f"{place}.ran")
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_reaction_that_the_tags_leave_out_is_owed(site: Site, light_host: Host, place: str) -> None:
    define(site, place, "one\n", restart(place, "conf"))
    site("apply", "site.py", "--yes")
    done = ran(light_host, place)
    define(site, place, "two\n", restart(place, "conf"))
    says = "command:restart reacts to the change of conf, but this run leaves it out"
    assert says in site("plan", "site.py", "-t", "conf").out
    assert says in site("apply", "site.py", "-t", "conf", "--yes").out
    assert ran(light_host, place) == done
    (owed,) = site.report("plan", "site.py", "--detailed-exitcode", code=2)["owed"]
    assert (owed["node"], owed["cause"]) == ("command:restart", "conf")
    assert "↳ because conf changes" in site("plan", "site.py").out
    site("apply", "site.py", "-t", "conf", "--yes")  # it changes nothing, so it owes nothing more
    site("apply", "site.py", "--yes")
    assert ran(light_host, place) == done + 1
    assert site("plan", "site.py", "--detailed-exitcode").out.endswith("Plan: 0 to add, 0 to change, 0 to destroy.\n")


@pytest.mark.parametrize("by", ["a run with its own tag", "a full run"])
def test_a_reaction_of_a_node_that_was_never_applied_is_owed(site: Site, light_host: Host, place: str, by: str) -> None:
    define(site, place, "one\n", restart(place, "conf", more=", tags=['app']"))
    site("apply", "site.py", "-t", "conf", "--yes")
    assert ran(light_host, place) == 0
    site("apply", "site.py", *(["-t", "app"] if "tag" in by else []), "--yes")
    assert ran(light_host, place) == 1
    assert not site.report("plan", "site.py", "--detailed-exitcode")["owed"]


def test_a_reaction_of_a_host_that_waits_for_facts_is_owed(site: Site, light_host: Host, place: str) -> None:
    for word, code in (("old", 0), ("new", 2)):
        define(site, place, "", restart(place, "conf"), content=FACT.replace("NEW", word))
        site("apply", "site.py", *(["-t", "conf"] if code else []), "--yes")
        assert bool(site.report("plan", "site.py", "--detailed-exitcode", code=code)["owed"]) == bool(code)


def test_a_reaction_to_an_item_of_a_list_is_owed(site: Site, light_host: Host, place: str) -> None:
    light_host.write(f"{place}/a.in", "")
    text = "one"
    for tags in ([], ["-t", "conf"]):
        (site.base / "items.yml").write_text(
            f"""- hosts: all
  resources:
  - file: "{{{{ host_item }}}}.out"
    content: {text!r}
    for_each_host: {{glob: {place}/*.in}}
    provides: conf
    tags: [conf]
  - command: restart
    shell: "true"
    effects: {{}}
    restart_on: [conf]
"""
        )
        site("apply", "items.yml", *tags, "--yes")
        assert light_host.read(f"{place}/a.in.out") == text
        text = "two"
    assert [debt["node"] for debt in site.report("plan", "items.yml")["owed"]] == ["command:restart"]


@pytest.mark.parametrize(("wrong", "owed"), [("refused", []), ("half", ["command:restart"])])
def test_a_node_that_failed_before_it_wrote_owes_nothing(
    site: Site, light_host: Host, place: str, wrong: str, owed: list[str]
) -> None:
    """A file that its validator refuses stays as it was. A program that fails may have changed something."""
    define(site, place, "one\n", restart(place, "conf"))
    site("apply", "site.py", "--yes")
    if wrong == "refused":
        define(site, place, "", restart(place, "conf"), content="content='two\\n', validate=['grep', 'one', '{}']")
    else:
        node = f"command('conf', shell='echo two > {place}.conf; exit 1', provides='conf')"
        site.play(node, restart(place, "conf"))
    site("apply", "site.py", "--yes", "--keep-going", code=1)
    report = site.report("plan", "site.py", "--detailed-exitcode", code=None)
    assert [debt["node"] for debt in report["owed"]] == owed


def test_a_debt_ends_with_its_node(site: Site, light_host: Host, place: str) -> None:
    """The node was never applied, and the playbook no longer defines it."""
    define(site, place, "one\n", restart(place, "conf"))
    site("apply", "site.py", "-t", "conf", "--yes")
    define(site, place, "one\n")
    site("apply", "site.py", "-t", "conf", "--yes")
    assert site.report("plan", "site.py", "-t", "conf")["owed"]  # a run with tags does not know all nodes
    site("apply", "site.py", "--yes")
    assert not site.report("plan", "site.py", "--detailed-exitcode")["owed"]
