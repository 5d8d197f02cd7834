"""HTTP hooks of a playbook on a host: order, status, finalizers, retries and pending calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.hooks.http import asking, reconcile
from statecfg.hooks.service import HookError, HookRequest, HookService
from statecfg.playbook import project
from statecfg.problems import InvalidInput
from statecfg.run import prepare
from statecfg.run.prepare import Choice
from statecfg.store import hosts, objects
from tests.host.hooks.http.projects import PLAYBOOK, Place, Watched, nodes


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place.make(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def watched() -> Watched:
    return Watched()


def status(place: Place, host: str = "web1") -> dict[str, Any]:
    known = objects.get(place.store, place.site, host)
    assert known is not None
    return dict(known.status)


def conditions(place: Place) -> dict[str, tuple[str, str]]:
    return {item["type"]: (item["status"], item["reason"]) for item in status(place)["conditions"]}


def sample() -> HookService:
    """Return a service that changes a deployment like Scoby's sample, and encodes it like a Go program."""
    service = HookService(form_factors=("deployment", "ksvc"))

    @service.pre_reconcile
    def shape(request: HookRequest) -> None:
        child = request.children.get("deployment")
        if child is None:
            raise HookError("children deployment element not found", status=400)
        containers = child["spec"]["template"]["spec"]["containers"]
        containers[0]["env"].append({"name": "FROM_HOOK_VAR", "value": "set by the hook"})
        limits = {"limits": {"cpu": "250m"}, "requests": {"cpu": "100m", "memory": "100Mi"}}
        containers[0]["resources"] = limits
        # A Go struct drops fields that it does not know, and writes its empty fields.
        spec = {**child["spec"], "strategy": {}, "selector": None}
        spec["template"]["metadata"] = {"creationTimestamp": None}
        metadata = {"name": child["metadata"]["name"], "creationTimestamp": None}
        request.children["deployment"] = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": spec,
            "status": {},
        }
        request.condition("HookReportedStatus", True, "HOOKREPORTSOK")
        request.status["annotations"] = {"greetings": "from hook"}
        request.object["spec"] = {"host": "another"}

    @service.finalize
    def end(request: HookRequest) -> None:
        raise HookError("finalization denied from hook")

    return service


WORKLOAD = """formFactor: {deployment: {replicas: 1}}
children: {deployment: "deployment:*"}
fromImage: {repo: "registry.example/teapot"}
statusConfiguration: {conditionsFromHook: [{type: HookReportedStatus}]}"""


def test_a_service_written_for_scoby_works_unchanged(place: Place) -> None:
    before = nodes(place.plain())
    with sample().serving() as url:
        place.hook(url, workload=WORKLOAD)
        after = nodes(place.apply())
    containers = after["deployment:teapot"]["attrs"]["template"]["spec"]["containers"]
    assert containers == [
        {
            "name": "teapot",
            "image": "teapot:1",
            "env": [{"name": "WATER", "value": "hot"}, {"name": "FROM_HOOK_VAR", "value": "set by the hook"}],
            "resources": {"limits": {"cpu": "250m"}, "requests": {"cpu": "100m", "memory": "100Mi"}},
        }
    ]
    assert after["deployment:teapot"]["requires"] == ["file:/etc/motd"]  # although the Go program drops it
    assert after["deployment:teapot"]["attrs"]["replicas"] == 1
    assert after["file:/etc/motd"] == before["file:/etc/motd"]
    assert place.fired() == [("teapot", "pre-reconcile", "ok")]
    assert status(place)["annotations"] == {"greetings": "from hook"}
    assert conditions(place) == {
        "Applied": ("Unknown", "UNKNOWN"),
        "HookReportedStatus": ("True", "HOOKREPORTSOK"),
        "Ready": ("Unknown", "UNKNOWN"),
    }
    known = objects.get(place.store, place.site, "web1")
    assert known is not None and known.spec["host"] == "web1"  # only the status of an object is accepted


def test_a_hook_receives_the_object_and_its_children(place: Place, watched: Watched) -> None:
    hosts.tag(place.store, "web1", ["edge"])
    with watched.service.serving() as url:
        place.hook(url)
        place.apply()
    (asked,) = watched.seen
    assert (asked.phase, asked.form_factor) == ("pre-reconcile", "playbook")
    assert asked.object["apiVersion"] == "statecfg/v1" and asked.object["kind"] == "Playbook"
    metadata = asked.object["metadata"]
    assert (metadata["name"], metadata["namespace"], metadata["generation"]) == ("web1", place.site, 1)
    assert (metadata["labels"], metadata["finalizers"]) == ({"edge": ""}, [])
    assert asked.object["spec"] == {"host": "web1", "playbook": place.site, "vars": {"tier": "front", "port": 8080}}
    assert sorted(asked.children) == ["deployment:teapot", "file:/etc/motd"]
    motd = asked.children["file:/etc/motd"]
    assert motd["kind"] == "File" and motd["metadata"] == {"name": "file:/etc/motd", "labels": {"text": ""}}
    assert (motd["spec"]["path"], motd["spec"]["content"], motd["requires"]) == ("/etc/motd", "hello\n", [])
    assert asked.children["deployment:teapot"]["requires"] == ["file:/etc/motd"]


def test_a_hook_that_changes_nothing_keeps_the_definition(place: Place, watched: Watched) -> None:
    watched.change = lambda request: request.children.update(request.children)
    with watched.service.serving() as url:
        place.hook(url)
        assert place.apply().jobs[0].definition.digest == place.plain().jobs[0].definition.digest


def test_plan_and_validate_call_no_hook(place: Place, watched: Watched) -> None:
    with watched.service.serving() as url:
        place.hook(url)
        prepare.offline(place.path, Choice())
        place.plain()
    assert watched.seen == []


def test_no_hook_is_called_for_an_invalid_playbook(place: Place, watched: Watched) -> None:
    (place.path).write_text(PLAYBOOK.replace("content:", "contents:"))
    with watched.service.serving() as url:
        place.hook(url)
        with pytest.raises(InvalidInput):
            place.apply()
    assert watched.seen == []


def test_hooks_run_by_order_and_see_changes_of_earlier_hooks(place: Place) -> None:
    first, second = Watched(), Watched()

    def more(request: HookRequest) -> None:
        request.children["file:/etc/motd"]["spec"]["content"] += "more\n"

    first.change = second.change = more
    with first.service.serving() as one, second.service.serving() as other:
        place.hook(one, "zeta", "order: 1")
        place.hook(other, "alpha", "order: 2\nselect: {types: [file], tags: [text]}")
        after = nodes(place.apply())
    assert [name for name, _, _ in place.fired()] == ["zeta", "alpha"]
    assert second.seen[0].children.keys() == {"file:/etc/motd"}
    assert second.seen[0].children["file:/etc/motd"]["spec"]["content"] == "hello\nmore\n"
    assert after["file:/etc/motd"]["attrs"]["content"]["text"] == "hello\nmore\nmore\n"


def test_a_hook_is_called_only_for_its_selected_hosts(place: Place, watched: Watched) -> None:
    with watched.service.serving() as url:
        place.hook(url, spec="select: {hosts: web2}")
        place.apply(None)
    assert [asked.object["metadata"]["name"] for asked in watched.seen] == ["web2"]


def test_selecting_an_unknown_host_is_refused(place: Place) -> None:
    place.hook("http://127.0.0.1:9/v1", spec="select: {hosts: wbe}")
    with pytest.raises(InvalidInput, match=r"teapot\.yml"):
        place.apply()


def test_the_status_persists_and_the_generation_grows_with_the_definition(place: Place, watched: Watched) -> None:
    watched.change = lambda request: request.status.update(seen=request.status.get("seen", 0) + 1)
    with watched.service.serving() as url:
        place.hook(url)
        place.apply()
        place.apply()
        (place.path).write_text(PLAYBOOK.replace("hello", "good day"))
        place.apply()
    assert status(place)["seen"] == 3 and status(place)["observedGeneration"] == 2
    assert [asked.object["metadata"]["generation"] for asked in watched.seen] == [1, 1, 2]


def test_undeclared_conditions_are_dropped_and_hooks_cannot_set_ours(place: Place, watched: Watched) -> None:
    def lie(request: HookRequest) -> None:
        for name in ("Ready", "Applied", "Mine", "Other"):
            request.condition(name, True, "SAYSTHEHOOK")
        request.status["conditions"].append("no condition at all")

    watched.change = lie
    with watched.service.serving() as url:
        place.hook(url, workload="statusConfiguration: {conditionsFromHook: [{type: Mine}, {type: Later}]}")
        reconciler = place.reconciler()
        prepare.playbook(place.path, Choice(limit="web1"), reconciler)
        unknown = ("Unknown", "UNKNOWN")
        mine = {"Later": unknown, "Mine": ("True", "SAYSTHEHOOK")}
        assert conditions(place) == {"Applied": unknown, **mine, "Ready": unknown}
        assert [item["type"] for item in status(place)["conditions"]] == ["Applied", "Later", "Mine", "Ready"]
        reconciler.run_ended("web1", place.site, False, "file:/etc/motd failed")
        assert conditions(place)["Ready"] == ("False", "CONDITIONSNOTOK")
        assert conditions(place)["Applied"] == ("False", "NOTAPPLIED")
        place.hook(url, workload="statusConfiguration: {conditionsFromHook: [{type: Mine}]}")
        reconciler = place.reconciler()
        prepare.playbook(place.path, Choice(limit="web1"), reconciler)
        reconciler.run_ended("web1", place.site, True)
    assert conditions(place) == {
        "Applied": ("True", "APPLIED"),
        "Mine": ("True", "SAYSTHEHOOK"),
        "Ready": ("True", "CONDITIONSOK"),
    }


def test_the_finalizer_stays_until_finalize_succeeds(place: Place, watched: Watched) -> None:
    with watched.service.serving() as url:
        place.hook(url, spec="onFailure: abort")
        place.apply()
        known = objects.get(place.store, place.site, "web1")
        assert known is not None and known.finalizers == ["statecfg/teapot"]
        watched.errors = [HookError("finalization denied from hook"), None]
        refused = place.reconciler().finalize("web1", place.site)
        assert (refused.ok, refused.left) == (False, ["statecfg/teapot"])
        assert refused.fired[0]["status"] == "owed" and refused.fired[0]["error"] == "finalization denied from hook"
        done = place.reconciler().finalize("web1", place.site)
    assert (done.ok, done.left) == (True, [])
    assert objects.get(place.store, place.site, "web1") is None and objects.owed(place.store) == []
    first, second = watched.seen[1:]
    assert first.phase == second.phase == "finalize" and first.children == {}
    assert first.object["metadata"]["finalizers"] == ["statecfg/teapot"]
    assert first.object["metadata"]["deletionTimestamp"] == second.object["metadata"]["deletionTimestamp"]
    assert place.reconciler().finalize("web1", place.site).fired == []


def test_a_hook_without_the_finalize_capability_gets_no_finalizer(place: Place, watched: Watched) -> None:
    with watched.service.serving() as url:
        place.hook(url, capabilities="[pre-reconcile]")
        place.apply()
        known = objects.get(place.store, place.site, "web1")
        assert known is not None and known.finalizers == []
        assert place.reconciler().finalize("web1", place.site).ok
    assert len(watched.seen) == 1 and objects.get(place.store, place.site, "web1") is None


def test_a_finalize_error_with_continue_removes_the_finalizer(place: Place, watched: Watched) -> None:
    with watched.service.serving() as url:
        place.hook(url)
        place.apply()
        watched.errors = [HookError("leave it", continue_=True)]
        done = place.reconciler().finalize("web1", place.site)
    assert done.ok and done.fired[0]["status"] == "continued" and objects.get(place.store, place.site, "web1") is None


def test_the_finalizer_of_a_deleted_hook_stays_and_is_reported(place: Place, watched: Watched) -> None:
    with watched.service.serving() as url:
        place.hook(url)
        place.apply()
    (place.root / "hooks/teapot.yml").unlink()
    done = place.reconciler().finalize("web1", place.site)
    assert not done.ok and done.left == ["statecfg/teapot"] and "no hook of that name" in done.fired[0]["error"]
    place.reconciler().forget("web1", place.site)
    assert objects.get(place.store, place.site, "web1") is None


def test_an_apply_cancels_a_pending_finalize(place: Place, watched: Watched) -> None:
    with watched.service.serving() as url:
        place.hook(url, spec="onFailure: abort")
        place.apply()
        watched.errors = [HookError("not yet")]
        place.reconciler().finalize("web1", place.site)
        place.apply()
    known = objects.get(place.store, place.site, "web1")
    assert known is not None and known.deleted is None and objects.owed(place.store) == []
    assert "deletionTimestamp" not in watched.seen[-1].object["metadata"]


def test_failed_calls_are_retried_with_longer_waits(place: Place, watched: Watched) -> None:
    watched.errors = [HookError("starting"), HookError("starting"), None]
    with watched.service.serving() as url:
        place.hook(url)
        started = time.monotonic()
        place.apply()
        took = time.monotonic() - started
    assert len(watched.seen) == 3 and 3 * asking.SLOT < took < 3 * asking.SLOT + 20
    assert place.fired() == [("teapot", "pre-reconcile", "ok")] and objects.owed(place.store) == []


def test_retry_waits_double_up_to_thirty_seconds() -> None:
    waits = [asking.wait_after(number) for number in (1, 2, 3, 7, 8, 1000)]
    assert waits == pytest.approx([0.34, 0.68, 1.36, 21.76, 30, 30])


def test_the_next_run_repeats_a_call_that_failed(place: Place, watched: Watched) -> None:
    watched.errors = [HookError("starting")] * 50
    with watched.service.serving() as url:
        place.hook(url, spec="deadline: PT2S")  # tried at 0, 0.34 and 1.02 s, or less often on a busy machine
        started, since = time.monotonic(), time.time()
        work = place.apply()
        assert time.monotonic() - started < 20
        (failed,) = work.failed
        assert work.jobs == [] and (failed.hook, failed.host, failed.message) == ("teapot", "web1", "starting")
        (owed,) = objects.owed(place.store)
        assert (owed.playbook, owed.host, owed.hook, owed.phase) == (place.site, "web1", "teapot", "pre-reconcile")
        assert owed.attempts == len(watched.seen) in (1, 2, 3)
        assert failed.again == owed.next >= since + asking.wait_after(owed.attempts)
        assert objects.owed(place.store, owed.next - 1) == []
        place.apply()
        (again,) = objects.owed(place.store)
        assert again.attempts == len(watched.seen) and again.since == owed.since
        watched.errors.clear()
        assert len(place.apply().jobs) == 1
    assert objects.owed(place.store) == []


@pytest.mark.parametrize(
    ("policy", "error", "jobs", "calls", "owed", "said"),
    [
        ("abort", HookError("m"), 0, 1, 1, "owed"),
        ("continue", HookError("m"), 1, 1, 1, "continued"),
        ("retry", HookError("m", permanent=True), 0, 1, 0, "failed"),
        ("retry", HookError("m", continue_=True), 1, 1, 0, "continued"),
        ("abort", HookError("m", permanent=True, continue_=True), 1, 1, 0, "continued"),
        ("continue", HookError("m", permanent=True), 1, 1, 0, "continued"),
    ],
)
def test_the_reply_and_the_policy_decide_what_a_failure_means(
    place: Place, watched: Watched, policy: str, error: HookError, jobs: int, calls: int, owed: int, said: str
) -> None:
    watched.errors = [error]
    with watched.service.serving() as url:
        place.hook(url, spec=f"onFailure: {policy}")
        work = place.apply()
    assert (len(work.jobs), len(watched.seen), len(objects.owed(place.store))) == (jobs, calls, owed)
    assert place.fired() == [("teapot", "pre-reconcile", said)]
    if jobs:  # The children are unchanged.
        assert work.jobs[0].definition.digest == place.plain().jobs[0].definition.digest
    assert (status(place).get("observedGeneration") == 1) == bool(jobs)


def test_a_failed_hook_excludes_only_its_host(place: Place, watched: Watched) -> None:
    watched.errors = [HookError("m"), None]
    with watched.service.serving() as url:
        place.hook(url, spec="onFailure: abort")
        work = place.apply(None)
    (job,), (failed,) = work.jobs, work.failed
    # The hosts are handled in parallel, so either of them may get the error.
    assert {job.host.name, failed.host} == {"web1", "web2"}
    assert str(failed) == "pre-reconcile of the hook teapot: m"


def test_a_refused_connection_fails_the_host_at_once(place: Place) -> None:
    place.hook("http://127.0.0.1:9/v1")
    started = time.monotonic()
    (failed,) = place.apply().failed
    assert "connection refused" in failed.message and failed.again is None and time.monotonic() - started < 20


def test_an_address_reference_that_is_not_found_is_reported(place: Place) -> None:
    place.hook("/v1")
    path = place.root / "hooks/teapot.yml"
    path.write_text(path.read_text().replace("address: {", "address: {ref: {kind: Host, name: web9}, "))
    assert [failed.message for failed in place.apply().failed] == ['hosts "web9" not found']


def test_stopping_the_run_ends_the_wait_for_a_retry(place: Place, watched: Watched) -> None:
    watched.errors = [HookError("m")] * 50
    with watched.service.serving() as url:
        place.hook(url)
        reconciler = place.reconciler()
        threading.Timer(0.5, reconciler.asking.cancel.set).start()
        started = time.monotonic()
        work = prepare.playbook(place.path, Choice(limit="web1"), reconciler)
        assert time.monotonic() - started < 20
    assert len(work.failed) == 1 and len(objects.owed(place.store)) == 1


def test_retry_calls_a_pending_finalize_when_it_is_due(place: Place, watched: Watched) -> None:
    with watched.service.serving() as url:
        place.hook(url, spec="onFailure: abort")
        place.apply()
        watched.errors = [HookError("not yet")]
        place.reconciler().finalize("web1", place.site)
        known = project.find(place.root)
        assert reconcile.retry_due(place.store, known, time.time() - 60) == []
        (done,) = reconcile.retry_due(place.store, known, time.time() + 60)
    assert (done["host"], done["playbook"], done["event"], done["status"]) == ("web1", place.site, "finalize", "ok")
    assert objects.owed(place.store) == [] and objects.get(place.store, place.site, "web1") is None


def test_retry_leaves_a_pending_pre_reconcile_to_the_next_run(place: Place, watched: Watched) -> None:
    watched.errors = [HookError("m")]
    with watched.service.serving() as url:
        place.hook(url, spec="onFailure: abort")
        place.apply()
        (owed,) = reconcile.retry_due(place.store, project.find(place.root), time.time() + 60)
    assert owed["status"] == "owed" and f"an apply of {place.site} on web1 calls it again" in owed["error"]
    assert len(watched.seen) == 1


def test_only_one_run_at_a_time_reconciles_an_object(place: Place, watched: Watched) -> None:
    inside, most = 0, 0
    lock = threading.Lock()

    def slow(request: HookRequest) -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.2)
        with lock:
            inside -= 1

    watched.change = slow
    with watched.service.serving() as url:
        place.hook(url)
        place.apply()
        reconcilers = [place.reconciler() for _ in range(4)]
        threads = [threading.Thread(target=each.finalize, args=("web1", place.site)) for each in reconcilers]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
    assert most == 1 and len(watched.seen) >= 2
