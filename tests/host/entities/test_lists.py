"""Lists: filters, order and pages, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

import pytest

from statecfg.entities.filters import FilterField, parse
from statecfg.entities.model import Principal, Query
from statecfg.entities.problems import ApiError
from statecfg.store import opened
from statecfg.store.entities import tables as entity_tables
from tests.host.store.postgresql import Server
from tests.unit.entities.scenes import ANN, ROOT, Scene, refused

CONTENTS: dict[str, Any] = {
    "a": {"color": "red", "size": {"height": 3, "unit": "m"}, "on": True, "note": "x;y"},
    "b": {"color": "green", "size": {"height": 20, "unit": "m"}, "on": False, "note": "a*b"},
    "c": {"color": "Red", "size": {"height": "3", "unit": "cm"}, "on": None, "list": [1, 2]},
    "d": {"color": "grün", "size": {"height": 2.5e1}, "on": 1, "note": "100%_[x]?"},
    "e": {"color": 'with "quotes" and \\', "size": 7, "big": 12345678901234567890},
}
FILTERS = [
    ("", "abcde"),
    ("name==a", "a"),
    ("(name==a)", "a"),
    ("name==a,name==b", "ab"),
    ("name==a;name==b", ""),
    ("name!=a;name!=b", "cde"),
    ("(name==a,name==b);(entity.color==red,entity.color==x)", "a"),
    ("((name==a;entity.on==true),(name==b;(entity.on==false)))", "ab"),
    ("name==a;", "a"),
    ("name==*", "abcde"),
    ("externalId==x-*", "abcde"),
    ("externalId==*-a", "a"),
    ("externalId==X-*", ""),
    ("entity.color==red", "a"),
    ("entity.color==*ed", "ac"),
    ("entity.color!=red", "bcde"),
    ("entity.color==gr*n", "bd"),
    ("entity.color==grün", "d"),
    ('entity.color==with "quotes" and \\\\', "e"),
    ("entity.color=lt=green", "c"),
    ("entity.color=ge=red", "ae"),
    ("entity.size.height==3", "ac"),
    ("entity.size.height==3.0", "a"),
    ("entity.size.height!=3", "bde"),
    ("entity.size.height==25", "d"),
    ("entity.size.height=gt=3", "bd"),
    ("entity.size.height=ge=3", "abcd"),
    ("entity.size.height=lt=20", "a"),
    ("entity.size.height=le=20", "ab"),
    ("entity.size.unit==m;entity.size.height=gt=5", "b"),
    ("entity.size==7", "e"),
    ("entity.big==12345678901234567890", "e"),
    ("entity.on==true", "a"),
    ("entity.on==false", "b"),
    ("entity.on==1", "d"),
    ("entity.on!=true", "bcde"),
    ("entity.note==x\\;y", "a"),
    ("entity.note==100%_[x]?", "d"),
    ("entity.note==100%_[x]*", "d"),
    ("entity.note==1?0*", ""),
    ("entity.note==a*b", "b"),
    ("entity.note==a\\*b", "b"),
    ("entity.note==*\\*b", "b"),
    ("entity.note==\\*b", ""),
    ("name!=\\*", "abcde"),
    ("entity.none.at.all==x", ""),
    ("entity.none!=x", "abcde"),
    ("state==PRE_CREATED", "abcde"),
    ("entityState==RESOLVED", ""),
    ("owner.name==root;org.name==System", "abcde"),
    ("creationDate=gt=1970-01-02T00:00:00Z", "abcde"),
    ("creationDate=lt=1970-01-02T00:00:00.000Z", ""),
]
WRONG = [
    ("nme==a", "Unknown field nme. Did you mean `name`?"),
    ("color==a", "Unknown field color."),
    ("entity==a", "entity is an object: name a key inside it, such as entity.size."),
    ("entity.==a", "Unknown field"),
    ("name.x==a", "Unknown field name.x."),
    ("name", "is invalid from character 1 on: 'name'"),
    ("name=a", "is invalid"),
    ("name==a)", "is invalid from character 8 on"),
    ("(name==a", "is invalid"),
    ("name==a;;name==b", "is invalid"),
    (",name==a", "is invalid"),
    ("name==a(b)", "is invalid"),
    ("()", "is invalid"),
    ("(" * 40 + "name==a" + ")" * 40, "nested more than 32 levels deep"),
    (",".join(["name==a"] * 101), "more than 100 comparisons"),
    ("name==" + "a" * 9000, "longer than 8192"),
    ("creationDate=gt=yesterday", "compared with times"),
]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Give a scene with a type `lists`, and an entity of this type for each of `CONTENTS`."""
    server: Server | None = None
    if request.param == "sqlite":
        url = str(tmp_path_factory.mktemp("lists") / "store.db")
    else:
        server = request.getfixturevalue("postgresql")
        name = server.fresh()
        url = server.url(name)
    with opened(url=url) as store:
        scene = Scene(store)
        kind = scene.type(nss="lists")
        for key, content in CONTENTS.items():
            body = {"name": key, "entity": content, "externalId": f"x-{key}"}
            scene.operations.create_entity(ROOT, kind.id, body)
            scene.now += 1
        yield scene
    if server is not None:
        server.drop(name)


def names(scene: Scene, query: Query, who: Principal = ROOT) -> str:
    found = scene.operations.list_entities_of_type(who, "acme", "lists", "1.0.0", query)
    assert found.total >= len(found.values)
    return "".join(item.name for item in found.values)


@pytest.mark.parametrize(("filter", "expected"), FILTERS)
def test_filters_select_the_matching_entities(filled: Scene, filter: str, expected: str) -> None:
    assert names(filled, Query(filter)) == expected


@pytest.mark.parametrize(("filter", "message"), WRONG, ids=lambda value: value[:30])
def test_wrong_filters_are_refused_with_a_message(scene: Scene, filter: str, message: str) -> None:
    assert message in refused(400, "INVALID_FILTER", scene.operations.list_entities, ROOT, Query(filter))


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("", "abcde"),
        ("name", "abcde"),
        ("externalId", "abcde"),
        ("entity.color", "cbdae"),
        ("entity.size.height", "eabdc"),  # heights: none, 3, 20, 25, "3"
        ("creationDate", "abcde"),
    ],
)
def test_entities_are_sorted_in_both_directions(filled: Scene, sort: str, expected: str) -> None:
    assert names(filled, Query("", sort)) == expected
    assert names(filled, Query("", sort, descending=True)) == expected[::-1]


def test_lists_are_paged_and_wrong_pages_are_refused(filled: Scene) -> None:
    o = filled.operations
    pages = [o.list_entities_of_type(ROOT, "acme", "lists", "1", Query("", page=n, page_size=2)) for n in (1, 2, 3, 4)]
    assert [[item.name for item in page.values] for page in pages] == [["a", "b"], ["c", "d"], ["e"], []]
    assert {(page.total, page.page_count, page.page_size) for page in pages} == {(5, 3, 2)}
    past = o.list_entities_of_type(ROOT, "acme", "lists", "1", Query("entity.on==true", page=9))
    assert (past.values, past.total) == ([], 1)
    for wrong in (Query(page=0), Query(page_size=0), Query(page_size=129), Query(page=10**10)):
        refused(400, "BAD_REQUEST", o.list_entities, ROOT, wrong)
        refused(400, "BAD_REQUEST", o.list_behavior_grants, ROOT, "urn:vcloud:type:acme:lists:1.0.0", wrong)
    refused(400, "INVALID_FILTER", o.list_entities, ROOT, Query(sort="colour"))


def test_lists_contain_only_entities_the_user_may_see(filled: Scene) -> None:
    assert names(filled, Query(), ANN) == ""
    found = filled.operations.list_entities_of_type(ROOT, "acme", "lists", "1", Query("name==b")).values[0]
    grant = {"memberId": ANN.org_id, "accessLevelId": "urn:vcloud:accessLevel:ReadOnly"}
    filled.operations.add_grant(ROOT, found.id, grant)
    assert names(filled, Query(), ANN) == "b"
    assert names(filled, Query("name==a"), ANN) == ""


FIELDS = {"entity": FilterField("content", "json"), "name": FilterField("name")}


@pytest.mark.parametrize("key", ["entity.a'b", 'entity.a"b', "entity.a b", "entity.a\\b", "entity.ä", "entity.a[0]"])
def test_invalid_keys_in_filters_are_refused(key: str) -> None:
    with pytest.raises(ApiError, match="is invalid"):
        parse(f"{key}==x", FIELDS)


def test_sql_in_a_filter_is_only_a_value(filled: Scene) -> None:
    assert names(filled, Query("entity.color==' or 1=1 --")) == ""
    assert names(filled, Query("name==' or 1=1 --")) == ""


def test_lists_of_ten_thousand_entities_are_fast(scene: Scene) -> None:
    """An API call may take 50 ms at the median. The operation itself may take 40 ms of that."""
    o, kind = scene.operations, scene.type(nss="many")

    def fill(connection: Any) -> None:
        many = []
        row = {"type": kind.id, "external_id": None, "state": "RESOLVED", "message": "", "revision": 1}
        row |= {"owner": "root", "org": "System", "tenant": "System", "created": 0.0, "modified": 0.0}
        for number in range(10_000):
            content = {"foo": f"x{number % 100}", "spec": {"count": number % 7, "name": f"n{number}", "pad": "z" * 200}}
            own = {"id": f"urn:vcloud:entity:acme:many:{number}", "name": f"e{number}", "content": content}
            many.append(row | own)
        connection.execute(entity_tables.entity.insert(), many)

    scene.store.attempt(fill)

    def median(call: Any) -> float:
        taken = []
        gc.collect()
        gc.disable()
        try:
            for _ in range(9):
                start = time.process_time()
                call()
                taken.append(time.process_time() - start)
        finally:
            gc.enable()
        return sorted(taken)[4]

    def of_type(**query: Any) -> float:
        return median(lambda: o.list_entities_of_type(ROOT, "acme", "many", "1.0.0", Query(**query)))

    assert of_type() < 0.04
    assert of_type(page=400) < 0.04
    assert of_type(sort="name", descending=True) < 0.04
    assert of_type(filter="entityState==RESOLVED") < 0.04
    assert of_type(filter="name==e77") < 0.04
    assert of_type(filter="entity.spec.name==n77") < 0.04
    body = {"name": "e", "entity": {"foo": "bar"}}
    assert median(lambda: o.create_entity(ROOT, kind.id, body)) < 0.04
