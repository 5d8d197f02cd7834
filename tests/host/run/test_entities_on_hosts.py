"""Entities that stand for files on a real host: creating, updating and deleting them changes the host."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.entities.model import Query
from statecfg.store import runs
from tests import ROOT
from tests.host.entities.sites import ME, PLAYBOOK, Sites, behavior
from tests.lab import Host, light_hosts, processes
from tests.lab.fixtures import or_skip

FUNCTIONS = """
def refuse(entity, arguments, context):
    raise RuntimeError("not while it is in use")
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with or_skip():
        (found,) = light_hosts(1, prefix="site")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def sites(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Give a project with an entity type for each way of deleting; all types use the same playbook."""
    found = Sites(tmp_path_factory.mktemp("sites"), (host,))
    found.write("behaviors/guard.py", FUNCTIONS)
    found.playbook("provide")
    found.behavior("refuse", {"type": "Function", "id": "guard:refuse"})
    provided = {"PostCreate": behavior("provide"), "PostUpdate": behavior("provide")}
    found.type("site", **provided, PostDelete=behavior("provide"))
    found.type("polled", **provided, PreDelete=behavior("provide"))
    found.type("guarded", **provided, PreDelete=behavior("refuse"))
    found.type("stuck", **provided, PostDelete=behavior("refuse"))
    yield found
    found.close()


def there(host: Host) -> list[str]:
    """Return the files of the entities on the host."""
    root = host.path("/srv/sites")
    return sorted(path.name for path in root.iterdir()) if root.exists() else []


def sleeping(host: Host) -> bool:
    """Tell whether the command of the slow playbook runs on the host."""
    for pid in processes.descendants(host.pid):
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() == "sleep":
                return True
        except (FileNotFoundError, ProcessLookupError):
            continue
    return False


def test_creating_updating_and_deleting_an_entity_changes_the_host(sites: Sites, host: Host) -> None:
    made = sites.create("site", "blog", title="Blog", extra=True)
    assert made.status == "success" and made.operation.startswith("Invoked provide blog"), made
    assert made.reported.details.startswith("run ") and "\n  site1: ok (" in made.reported.details
    (run,) = made.result["runs"]
    assert runs.recent(sites.store, 1)[0].id == run["run"]
    assert sites.state("blog") == "RESOLVED" and there(host) == ["blog.extra", "blog.html"]
    assert host.path("/srv/sites/blog.html").read_text() == "Blog plain"

    # Two entities: neither prunes the other or removes the directory that both need.
    assert sites.create("site", "shop", title="Shop").status == "success"
    assert sites.update("blog", title="News", extra=False).status == "success"
    assert there(host) == ["blog.html", "shop.html"]
    assert host.path("/srv/sites/blog.html").read_text() == "News plain"
    gone = sites.delete("blog")
    assert gone.status == "success" and gone.operation.startswith("PostDelete hook: urn:vcloud:task:")
    assert sites.state("blog") == "gone" and there(host) == ["shop.html"]
    assert sites.delete("shop").status == "success" and there(host) == []


def test_an_entity_in_deletion_is_found_by_a_filter_and_deleted(sites: Sites, host: Host) -> None:
    """The PreDelete hook removes the marked entity from the host. A query finds the entity, and it can be deleted."""
    sites.create("polled", "wiki", title="Wiki")
    assert there(host) == ["wiki.html"]
    before = sites.entity("wiki")
    body = {"name": "wiki", "entity": dict(before.content), "entityState": "IN_DELETION"}
    marked = sites.calls.update_entity(ME, before.id, body)
    assert marked.accepted and marked.task is not None and sites.state("wiki") == "RESOLVED"
    assert sites.finish(marked.task).operation.startswith("PreDelete hook: urn:vcloud:task:")
    assert there(host) == []
    query = Query("(entityState==IN_DELETION)")
    assert [each.name for each in sites.calls.list_entities_of_type(ME, "acme", "polled", "1", query).values] == [
        "wiki"
    ]
    assert sites.delete("wiki").status == "success" and sites.state("wiki") == "gone"


def test_a_failed_hook_leaves_the_documented_entity_state(sites: Sites, host: Host) -> None:
    host.path("/srv/sites").mkdir()
    host.path("/srv/sites/bad.html").mkdir()  # in place of a file
    failed = sites.create("site", "bad", title="x")
    assert failed.error is not None and "site1" not in failed.error["message"]
    assert "site1: failed: file:/srv/sites/bad.html" in failed.reported.details
    assert "site1" not in sites.entity("bad").message
    assert sites.state("bad") == "RESOLUTION_ERROR"
    host.path("/srv/sites/bad.html").rmdir()
    assert sites.delete("bad").status == "success" and sites.state("bad") == "gone"

    sites.create("guarded", "kept", hooks=False, title="Kept")
    refused = sites.delete("kept")
    assert refused.error is not None and "not while it is in use" in refused.error["message"]
    assert sites.state("kept") == "RESOLVED"
    sites.write("playbooks/site.yml", "hosts: all\nresources: {{\n")
    failed = sites.update("kept", title="Other")
    sites.write("playbooks/site.yml", PLAYBOOK)
    assert failed.error is not None and "[SC0315]" in failed.error["message"] and sites.state("kept") == "RESOLVED"
    assert sites.delete("kept", hooks=False).status == "success" and sites.state("kept") == "gone"

    sites.create("stuck", "left", hooks=False, title="Left")
    assert sites.delete("left").status == "error" and sites.state("left") == "IN_DELETION"


def test_two_entities_created_at_once_both_succeed(sites: Sites, host: Host) -> None:
    kind = "urn:vcloud:type:acme:site:1.0.0"
    tasks = [
        sites.calls.create_entity(ME, kind, {"name": name, "entity": {"title": "Same"}}).id for name in ("one", "two")
    ]
    with sites.working():
        processes.wait_until(lambda: all(sites.calls.get_task(ME, id).is_finished for id in tasks), 60, "both tasks")
    assert {sites.calls.get_task(ME, id).status for id in tasks} == {"success"}
    assert {"one.html", "two.html"} <= set(there(host))


def test_another_worker_finishes_the_task_of_a_killed_process(sites: Sites, host: Host) -> None:
    slow = "- command: slow\n    argv: [sh, -c, 'sleep 3; touch /srv/slept']\n    creates: /srv/slept\n"
    sites.write(
        "playbooks/slow.yml",
        f"hosts: all\nresources:\n  {slow}  - file: /srv/slow\n    content: done\n    requires: [command:slow]\n",
    )
    sites.behavior("slow", {"type": "Playbook", "id": "playbooks/slow.yml"})
    sites.type("slow", PostCreate=behavior("slow"))
    argv = [sys.executable, "-m", "statecfg", "entity", "create", "slow", "slow", "--set", "title=x"]
    environment = {**os.environ, **sites.environment, "PYTHONPATH": str(ROOT)}
    killed = subprocess.Popen(argv, cwd=sites.root, env=environment, stdout=subprocess.DEVNULL)

    try:
        processes.wait_until(lambda: sleeping(host), 60, "the command on the host")
    finally:
        killed.kill()
        killed.wait()
    (task,) = sites.calls.list_tasks(ME, Query(page_size=1)).values
    assert task.entity_name == "slow" and task.status == "running"
    assert not host.path("/srv/slow").exists()
    # Half a minute later another worker takes the task, because nobody renewed the lease.
    with sites.working(later=31) as worker:
        ended = worker.finish(task.id, 60, ME)
    assert ended.status == "success", ended
    assert host.path("/srv/slow").read_text() == "done" and sites.state("slow") == "RESOLVED"


def test_an_entity_that_moves_is_removed_from_its_old_host(tmp_path: Path) -> None:
    with or_skip():
        hosts = light_hosts(2, prefix="moved")
    moving = Sites(tmp_path, tuple(hosts))
    try:
        moving.playbook("provide", limit="{{ entity.host }}", hosts="moved*")
        moving.type("site", PostCreate=behavior("provide"), PostUpdate=behavior("provide"))
        assert moving.create("site", "blog", title="B", host="moved1").status == "success"
        ended = moving.update("blog", title="B", host="moved2")
        assert [run["mode"] for run in ended.result["runs"]] == ["apply", "destroy"]
        assert (there(hosts[0]), there(hosts[1])) == ([], ["blog.html"])
    finally:
        moving.close()
        for each in hosts:
            each.stop()
