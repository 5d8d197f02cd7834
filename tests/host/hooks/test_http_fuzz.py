"""Random answers and children of a service give only a valid reply or a reported error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecfg.graph.graph import Graph
from statecfg.hooks.http import calls as http_hooks
from statecfg.hooks.http.calls import Reply
from statecfg.hooks.http.children import HookChildren
from statecfg.hooks.http.exchange import Answer
from statecfg.hooks.http.held import Held, NotOurs
from statecfg.hooks.registration.model import HttpHook, Registration
from statecfg.problems import InvalidInput
from statecfg.run import prepare
from tests.host.hooks.http.projects import Place

OF_REPLIES = ["object", "children", "message", "permanent", "continue"]
OF_CHILDREN = ["apiVersion", "kind", "metadata", "name", "spec", "requires", "restartOn", "status"]
OF_NODES = ["path", "content", "mode", "template", "tags", "provides", "$secret", "$content", "$$x"]
KEYS = st.sampled_from([*OF_REPLIES, *OF_CHILDREN, *OF_NODES])
TEXTS = st.one_of(
    st.sampled_from(["File", "statecfg/v1", "file:/etc/motd", "/etc/x", "0644", "key", ""]), st.text(max_size=5)
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
MANY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@MANY
@given(
    st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()), st.sampled_from([200, 204, 404, 500])
)
def test_every_answer_becomes_a_reply_or_an_error(body: bytes, status: int) -> None:
    for phase in ("pre-reconcile", "finalize"):
        answer = Answer(status, body)
        if status < 300:
            reply = http_hooks._reply(answer, phase, "http://hook/v1")
        else:
            reply = Reply(error=http_hooks._failure(answer, "http://hook/v1"))
        json.dumps([reply.object, reply.children], allow_nan=False).encode()
        assert reply.error is None or (reply.object is None and reply.children is None)
        assert all(isinstance(child.get("kind"), str) for child in (reply.children or {}).values())


@MANY
@given(VALUES)
def test_secrets_hidden_in_values_are_restored_unchanged(value: Any) -> None:
    held = Held({"key": "key"})
    shown = held.to_json(value)
    assert '"key' not in json.dumps(shown).replace('{"$secret": "key', "")
    back = held.restored(json.loads(json.dumps(shown)))
    assert json.dumps(back, sort_keys=True) == json.dumps(value, sort_keys=True)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Give the graph of the test project's playbook."""
    place = Place.make(tmp_path_factory.mktemp("site"))
    found: list[Graph] = []

    class Looking:
        unsure = ()

        def concerns(self, host: str) -> list[str]:
            return ["looking"]

        def reshape(self, host: Any, playbook: str, graph: Graph, variables: Any, secrets: Any) -> Graph:
            found.append(graph)
            return graph

    prepare.playbook(place.path, prepare.Choice(limit="web1"), Looking())
    place.store.close()
    yield found[0]


@MANY
@given(st.data())
def test_every_child_becomes_a_node_or_a_reported_mistake(graph: Graph, data: st.DataObject) -> None:
    hook = Registration("h", (), http=HttpHook("http://hook", None))
    children = HookChildren(graph, hook, {})
    given = json.loads(json.dumps(children.sent))
    for key in list(given):
        part = data.draw(
            st.sampled_from(["", "kind", "metadata", "spec", "requires", "restartOn", "attribute", "gone"])
        )
        if part == "gone":
            del given[key]
        elif part == "attribute":
            given[key]["spec"].update(data.draw(st.dictionaries(KEYS, VALUES, max_size=3)))
        elif part:
            given[key][part] = data.draw(VALUES)
    if data.draw(st.booleans()):
        given["more"] = {"apiVersion": "statecfg/v1", "kind": "File", "spec": data.draw(VALUES)}
    try:
        made = children.replaced(given)
    except InvalidInput as error:
        assert all("h" in item.detail and item.locations for item in error.problems)
    else:
        assert {node.provides for node in graph.nodes()} <= {node.provides for node in made.nodes()}


def test_a_marker_that_was_not_sent_is_refused() -> None:
    for marker in ({"$secret": "key"}, {"$content": 1}, {"$value": ["x"]}, {"$secret": {"$secret": "key"}}):
        with pytest.raises(NotOurs):
            Held({"key": "key"}).restored(marker)
