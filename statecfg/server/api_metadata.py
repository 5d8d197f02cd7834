"""Metadata of entities over HTTP."""

from __future__ import annotations

from starlette.responses import Response

from statecfg.entities import metadata, shapes
from statecfg.entities.model import MetadataEntry
from statecfg.server.answers import nothing, one, page
from statecfg.server.auth import AUTHOR, VIEWER
from statecfg.server.media import Body
from statecfg.server.parameters import listing, listing_by
from statecfg.server.request import Request
from statecfg.server.routing import Routes

routes = Routes()
_ALL = "/cloudapi/1.0.0/entities/{entity}/metadata"
_ONE = f"{_ALL}/{{metadata}}"


@routes(
    "GET",
    _ALL,
    VIEWER,
    "List the metadata of an entity.",
    {200: "MetadataEntries"},
    query=listing_by(metadata.FIELDS),
)
def _list(request: Request) -> Response:
    entries = request.operations.list_metadata(request.principal, request.path_params["entity"], listing(request))
    return page(request, entries, shapes.metadata_entry)


@routes("POST", _ALL, AUTHOR, "Add metadata to an entity.", {201: "MetadataEntry"}, request=Body("NewMetadataEntry"))
def _add(request: Request) -> Response:
    entry = request.operations.add_metadata(request.principal, request.path_params["entity"], request.content)
    return _shown(request, entry, 201)


@routes(
    "GET", _ONE, VIEWER, "Show metadata of an entity. Send its ETag in If-Match with a change.", {200: "MetadataEntry"}
)
def _get(request: Request) -> Response:
    path = request.path_params
    return _shown(request, request.operations.get_metadata(request.principal, path["entity"], path["metadata"]))


@routes(
    "PUT",
    _ONE,
    AUTHOR,
    "Change the value of metadata of an entity.",
    {200: "MetadataEntry"},
    request=Body("ChangedMetadataEntry"),
)
def _update(request: Request) -> Response:
    path, revision = request.path_params, request.headers.get("if-match")
    entry = request.operations.update_metadata(
        request.principal, path["entity"], path["metadata"], request.content, revision
    )
    return _shown(request, entry)


@routes("DELETE", _ONE, AUTHOR, "Remove metadata from an entity.", {204: None})
def _delete(request: Request) -> Response:
    path = request.path_params
    request.operations.delete_metadata(request.principal, path["entity"], path["metadata"])
    return nothing()


def _shown(request: Request, entry: MetadataEntry, status: int = 200) -> Response:
    return one(request, shapes.metadata_entry, entry, status, {"ETag": entry.etag})
