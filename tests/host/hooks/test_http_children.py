"""Children that a hook returns are validated like any definition, and secrets are never sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.problems import InvalidInput
from statecfg.store import objects
from tests.host.hooks.http.projects import PLAYBOOK, Place, Watched, nodes
from tests.host.hooks.http.servers import answer, serving

MOTD = "file:/etc/motd"
Children = dict[str, Any]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place.make(tmp_path)
    yield made
    made.store.close()


def reshaped(
    place: Place, change: Callable[[Children], Any], spec: str = "", workload: str = ""
) -> dict[str, dict[str, Any]]:
    """Apply with a hook that changes the children. Return the resulting nodes."""
    watched = Watched()
    watched.change = lambda request: change(request.children)
    with watched.service.serving() as url:
        place.hook(url, spec=spec, workload=workload)
        return nodes(place.apply())


def refused(place: Place, change: Callable[[Children], Any]) -> str:
    """Apply with a hook that returns wrong children. Return the error, which must name the hook's file."""
    with pytest.raises(InvalidInput) as failed:
        reshaped(place, change)
    assert all("teapot" in item.detail for item in failed.value.problems)
    assert any(found.file.endswith("hooks/teapot.yml") for item in failed.value.problems for found in item.locations)
    assert place.fired()[-1] == ("teapot", "pre-reconcile", "failed")
    return "\n".join(f"{item.code} {item.detail} {item.help}" for item in failed.value.problems)


def spec(children: Children, name: str = MOTD) -> dict[str, Any]:
    found: dict[str, Any] = children[name]["spec"]
    return found


def test_a_hook_can_change_add_and_remove_attributes(place: Place) -> None:
    def change(children: Children) -> None:
        spec(children).update(mode="0600", owner="root")
        spec(children)["content"] = "another\n"
        spec(children, "deployment:teapot").pop("replicas")

    after = reshaped(place, change)
    assert after[MOTD]["attrs"]["mode"] == 0o600 and after[MOTD]["attrs"]["owner"] == "root"
    assert after[MOTD]["attrs"]["content"]["text"] == "another\n"
    assert after[MOTD]["options"] == {"tags": ["text"]} and after[MOTD]["position"] == "playbooks/site.yml:5:5"
    assert after["deployment:teapot"]["attrs"]["replicas"] == 1


def test_an_attribute_set_to_null_is_removed(place: Place) -> None:
    after = reshaped(place, lambda children: spec(children, "deployment:teapot").update(replicas=None, strategy=None))
    assert after["deployment:teapot"]["attrs"].keys() == {"name", "replicas", "template"}


def test_a_name_dropped_by_a_typed_service_is_kept(place: Place) -> None:
    def typed(children: Children) -> None:
        del spec(children, "deployment:teapot")["name"]
        spec(children, "deployment:teapot")["replicas"] = 2

    after = reshaped(place, typed)
    assert after["deployment:teapot"]["attrs"]["name"] == "teapot"
    assert after["deployment:teapot"]["attrs"]["replicas"] == 2


def test_a_child_under_an_alias_keeps_what_a_typed_service_drops(place: Place) -> None:
    """The service knows only the kind and some attributes: not the name, the requirements, and the node's argument."""
    before = nodes(place.plain())["deployment:teapot"]

    def typed(children: Children) -> None:
        sent = children["deployment"]
        children["deployment"] = {"kind": sent["kind"], "spec": {"template": {"env": {}}, "replicas": 2}}

    after = reshaped(place, typed, workload='children: {deployment: "deployment:*"}')
    assert after["deployment:teapot"]["attrs"] == {"name": "teapot", "template": {"env": {}}, "replicas": 2}
    for key in ("type", "requires", "position"):
        assert after["deployment:teapot"][key] == before[key]
    assert after.keys() == {MOTD, "deployment:teapot"}


def test_a_hook_can_change_requirements_and_triggers(place: Place) -> None:
    assert "requires" not in reshaped(place, lambda c: c["deployment:teapot"].update(requires=[]))["deployment:teapot"]
    after = reshaped(place, lambda c: c["deployment:teapot"].update(restartOn=[MOTD]))
    assert after["deployment:teapot"]["triggers"] == [MOTD]


def test_a_new_child_of_a_statecfg_kind_becomes_a_node(place: Place) -> None:
    def add(children: Children) -> None:
        made = {"apiVersion": "statecfg/v1", "kind": "File", "spec": {"path": "/etc/issue", "content": "hi\n"}}
        children["issue"] = {**made, "metadata": {"name": "file:/etc/issue"}, "requires": [MOTD]}
        children["line"] = {**made, "kind": "LineInFile", "spec": {"path": "/etc/hosts", "line": "192.0.2.1 a"}}

    after = reshaped(place, add)
    assert after["file:/etc/issue"]["requires"] == [MOTD]
    assert after["file:/etc/issue"]["position"].startswith("hooks/teapot.yml:1")
    assert after["line"]["type"] == "line_in_file"


def test_a_new_child_of_a_foreign_kind_is_ignored(place: Place) -> None:
    before = place.plain().jobs[0].definition.digest
    extra = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    watched = Watched()
    watched.change = lambda request: request.children.update(extra=extra)
    with watched.service.serving() as url:
        place.hook(url)
        assert place.apply().jobs[0].definition.digest == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.pop(MOTD), f"SC0609 hook teapot: the child `{MOTD}` is missing in the response"),
        (lambda c: c[MOTD].update(kind="Directory"), f"the child `{MOTD}` was a File, and is a Directory"),
        (lambda c: c[MOTD]["metadata"].update(name="x"), f"`{MOTD}` was called {MOTD}, and is called x"),
        (lambda c: c[MOTD].update(spec=[]), "has a `spec` that is not a map"),
        (lambda c: c[MOTD].update(requires="a"), "has a `requires` that is not a list of names"),
        (lambda c: c[MOTD].update(restartOn=[1]), "has a `restartOn` that is not a list of names"),
        (
            lambda c: spec(c).update(contnt="a"),
            f"SC0101 file has no attribute `contnt` ({MOTD}) (in the child `{MOTD}`",
        ),
        (lambda c: spec(c).update(contnt="a"), "did you mean `content`?"),
        (lambda c: spec(c).update(mode=1.5), "SC0202 `mode`"),
        (lambda c: spec(c).update(mode="rwx"), "that the hook teapot returned)"),
        (lambda c: spec(c).update(tags=["a"]), "has `tags` in its `spec`"),
        (lambda c: spec(c).update(requires=["a"]), "has `requires` in its `spec`"),
        (lambda c: spec(c).update(content={"$secret": "x"}), "where $secret 'x' is not part of the request"),
        (lambda c: c[MOTD].update(requires=["file:/nowhere"]), "SC0111"),
        (lambda c: c[MOTD].update(requires=["deployment:teapot"]), "SC0113"),
        (lambda c: c[MOTD].update(requires=[MOTD]), "SC0112"),
        (lambda c: c.update(twin={**c[MOTD], "metadata": {"name": "twin"}}), "SC0114"),
        (lambda c: c.update(twin=dict(c[MOTD])), "SC0110"),
        (
            lambda c: c.update(a={"apiVersion": "statecfg/v1", "kind": "Fil", "spec": {}}),
            "the child `a` is a Fil, which is not a node type (on web1",
        ),
    ],
)
def test_returned_children_are_validated_like_any_definition(
    place: Place, change: Callable[[Children], Any], words: str
) -> None:
    assert words in refused(place, change)


def test_all_mistakes_in_children_are_reported_at_once(place: Place) -> None:
    def change(children: Children) -> None:
        spec(children).update(contnt="a")
        spec(children, "deployment:teapot").update(replicas="many")

    told = refused(place, change)
    assert "`contnt`" in told and "`replicas` of deployment:teapot" in told


def test_an_error_found_during_preparation_names_the_hook(place: Place) -> None:
    def change(children: Children) -> None:
        spec(children).pop("content")
        spec(children)["source"] = "no-such-file"

    with pytest.raises(
        InvalidInput, match=r"SC0118.*no-such-file does not exist.*after these hooks changed it: teapot"
    ):
        reshaped(place, change)


def test_wrong_children_are_ignored_if_the_hook_may_fail(place: Place) -> None:
    after = reshaped(place, lambda children: children.pop(MOTD), "onFailure: continue")
    assert after == nodes(place.plain())
    assert place.fired() == [("teapot", "pre-reconcile", "continued")]


def test_true_is_not_accepted_as_the_number_one(place: Place) -> None:
    assert "`replicas`" in refused(place, lambda children: spec(children, "deployment:teapot").update(replicas=True))


def test_an_ambiguous_child_key_is_refused(place: Place) -> None:
    place.hook("http://127.0.0.1:9/v1", workload='children: {one: "*"}')
    with pytest.raises(InvalidInput, match=r"SC0610.*could be (file:/etc/motd, deployment:teapot|deploy.*)"):
        place.apply()
    place.hook("http://127.0.0.1:9/v1", workload=f'children: {{one: "{MOTD}", two: "{MOTD}"}}')
    with pytest.raises(InvalidInput, match="SC0610"):
        place.apply()
    place.hook("http://127.0.0.1:9/v1", workload='children: {"deployment:teapot": "file:*"}')
    with pytest.raises(InvalidInput, match="SC0610"):
        place.apply()


SECRETS = (
    PLAYBOOK.replace("vars: {port: 8080}", "vars: {port: 8080, key: !secret {env: TEAPOT_KEY}}")
    .replace('content: "hello\\n"', 'content: "key = {{ key }}\\n"')
    .replace("value: hot", 'value: "{{ key }}"')
)


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TEAPOT_KEY", 'very"hot\\water')
    return 'very"hot\\water'


def test_secrets_are_not_sent_and_are_restored_in_place(tmp_path: Path, secret: str) -> None:
    place = Place.make(tmp_path, SECRETS)
    before = nodes(place.plain())
    with serving(answer(200)) as server:
        place.hook(server.url)
        place.apply()
    (asked,) = server.asked
    assert b"very" not in asked.body and b"water" not in asked.body
    sent = asked.json()
    assert sent["object"]["spec"]["vars"]["key"] == {"$secret": "TEAPOT_KEY"}
    assert sent["children"][MOTD]["spec"]["content"] == {"$secret": "TEAPOT_KEY"}

    def change(children: Children) -> None:
        spec(children)["mode"] = "0600"
        container = spec(children, "deployment:teapot")["template"]["spec"]["containers"][0]
        container["env"].insert(0, {"name": "MORE", "value": "x"})

    after = reshaped(place, change)
    assert after[MOTD]["attrs"]["content"] == before[MOTD]["attrs"]["content"]
    env = after["deployment:teapot"]["attrs"]["template"]["spec"]["containers"][0]["env"]
    assert env == [{"name": "MORE", "value": "x"}, {"name": "WATER", "value": secret}]
    known = objects.get(place.store, place.site, "web1")
    assert known is not None and "water" not in repr(known)
    place.store.close()
    assert b"water" not in (tmp_path / "store.db").read_bytes()


def test_moving_a_secret_to_another_attribute_is_refused(tmp_path: Path, secret: str) -> None:
    place = Place.make(tmp_path, SECRETS)

    def move(children: Children) -> None:
        spec(children)["owner"] = spec(children)["content"]

    told = refused(place, move)
    assert "has `owner`, where $secret 'TEAPOT_KEY' is not part of the request" in told and "water" not in told
    place.store.close()


def test_a_secret_in_a_node_name_is_refused_before_sending(
    tmp_path: Path, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAPOT_KEY", "kettle")
    place = Place.make(
        tmp_path, SECRETS.replace("file: /etc/motd", 'file: "/etc/{{ key }}"').replace(MOTD, "file:/etc/kettle")
    )
    with serving(answer(200)) as server:
        place.hook(server.url)
        with pytest.raises(InvalidInput) as caught:
            place.apply()
    assert server.asked == [] and caught.value.problems[0].code == "SC0425" and "kettle" not in str(caught.value)
    place.store.close()


def test_large_content_is_sent_as_its_digest(tmp_path: Path) -> None:
    text = "x" * 20_000
    place = Place.make(tmp_path, PLAYBOOK.replace("hello\\n", text))
    seen: list[Any] = []
    after = reshaped(
        place, lambda children: (seen.append(spec(children)["content"]), spec(children).update(mode="0600"))
    )
    assert seen == [{"$content": hashlib.sha256(text.encode()).hexdigest(), "size": 20_000}]
    assert after[MOTD]["attrs"]["content"] == nodes(place.plain())[MOTD]["attrs"]["content"]
    place.store.close()


def test_keys_that_look_like_markers_are_escaped(tmp_path: Path) -> None:
    place = Place.make(tmp_path, PLAYBOOK.replace("value: hot", "$secret: hot, $$x: 1"))
    seen: list[Any] = []

    def change(children: Children) -> None:
        seen.append(spec(children, "deployment:teapot")["template"]["spec"]["containers"][0]["env"][0])
        spec(children, "deployment:teapot")["template"]["more"] = 1

    after = reshaped(place, change)
    assert seen == [{"name": "WATER", "$$secret": "hot", "$$$x": 1}]
    before = nodes(place.plain())["deployment:teapot"]["attrs"]["template"]
    assert after["deployment:teapot"]["attrs"]["template"] == {**before, "more": 1}
    place.store.close()
