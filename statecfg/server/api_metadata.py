"""Metadata of entities over HTTP."""

from __future__ import annotations

from statecfg.entities import metadata, shapes
from statecfg.entities.model import MetadataEntry
from statecfg.server.exchange import AUTHOR, VIEWER, Answer, Asked, Route
from statecfg.server.lists import page
from statecfg.server.parameters import listing, listing_by

_ALL = "/cloudapi/1.0.0/entities/{entity}/metadata"
_ONE = f"{_ALL}/{{metadata}}"


def _shown(asked: Asked, entry: MetadataEntry, status: int = 200) -> Answer:
    return Answer(status, shapes.metadata_entry(entry, asked.version), {"ETag": entry.etag})


def _list(asked: Asked) -> Answer:
    found = asked.operations.list_metadata(asked.principal, asked.path["entity"], listing(asked))
    return page(asked, found, shapes.metadata_entry)


def _add(asked: Asked) -> Answer:
    return _shown(asked, asked.operations.add_metadata(asked.principal, asked.path["entity"], asked.body), 201)


def _get(asked: Asked) -> Answer:
    return _shown(asked, asked.operations.get_metadata(asked.principal, asked.path["entity"], asked.path["metadata"]))


def _update(asked: Asked) -> Answer:
    place = asked.path["entity"], asked.path["metadata"]
    made = asked.operations.update_metadata(asked.principal, *place, asked.body, asked.headers.get("if-match"))
    return _shown(asked, made)


def _delete(asked: Asked) -> Answer:
    asked.operations.delete_metadata(asked.principal, asked.path["entity"], asked.path["metadata"])
    return Answer(204)


ROUTES = (
    Route(
        "GET",
        _ALL,
        VIEWER,
        _list,
        "List the metadata of an entity.",
        {200: "MetadataEntries"},
        listing_by(metadata.FIELDS),
    ),
    Route("POST", _ALL, AUTHOR, _add, "Add metadata to an entity.", {201: "MetadataEntry"}, (), "NewMetadataEntry"),
    Route(
        "GET", _ONE, VIEWER, _get, "Show metadata of an entity. Its ETag goes into If-Match.", {200: "MetadataEntry"}
    ),
    Route(
        "PUT",
        _ONE,
        AUTHOR,
        _update,
        "Change the value of metadata of an entity.",
        {200: "MetadataEntry"},
        (),
        "ChangedMetadataEntry",
    ),
    Route("DELETE", _ONE, AUTHOR, _delete, "Remove metadata from an entity.", {204: None}),
)
