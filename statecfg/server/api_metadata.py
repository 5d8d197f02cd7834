"""Metadata of entities over HTTP."""

from __future__ import annotations

from starlette.responses import Response

from statecfg.entities import metadata, shapes
from statecfg.entities.operations import Operations
from statecfg.server.auth import AUTHOR, VIEWER
from statecfg.server.media import Body
from statecfg.server.parameters import listing_by
from statecfg.server.request import ApiRequest
from statecfg.server.resource import ApiResource
from statecfg.server.responses import one
from statecfg.server.routing import Routes

routes = Routes()
_ALL = "/cloudapi/1.0.0/entities/{entity}/metadata"
_ONE = f"{_ALL}/{{metadata}}"
_SHOW = "Show metadata of an entity. Send its ETag in If-Match with a change."
_entry = ApiResource(routes, "MetadataEntry", "MetadataEntries", shapes.metadata_entry, listing_by(metadata.FIELDS))
_entry.list(_ALL, VIEWER, "List the metadata of an entity.", Operations.list_metadata)
_entry.create(_ALL, AUTHOR, "Add metadata to an entity.", Operations.add_metadata)
_entry.show(_ONE, VIEWER, _SHOW, Operations.get_metadata)


@routes(
    "PUT",
    _ONE,
    AUTHOR,
    "Change the value of metadata of an entity.",
    {200: "MetadataEntry"},
    request=Body("ChangedMetadataEntry"),
)
def _update(request: ApiRequest) -> Response:
    path, revision = request.path_params, request.headers.get("if-match")
    entry = request.operations.update_metadata(
        request.principal, path["entity"], path["metadata"], request.content, revision
    )
    return one(request, shapes.metadata_entry, entry)


_entry.delete(_ONE, AUTHOR, "Remove metadata from an entity.", Operations.delete_metadata)
