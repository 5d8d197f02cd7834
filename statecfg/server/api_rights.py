"""The caller's access levels of types and entities. The page offers only what they allow."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from statecfg.server.auth import VIEWER
from statecfg.server.parameters import OWN_API
from statecfg.server.request import ApiRequest
from statecfg.server.routing import Routes

routes = Routes()


@routes("GET", f"{OWN_API}/rights", VIEWER, "Show your access level of each entity type.", {200: "TypeRights"})
def _of_types(request: ApiRequest) -> Response:
    return JSONResponse({"types": request.operations.levels_of_types(request.principal)})


@routes("GET", f"{OWN_API}/rights/{{entity}}", VIEWER, "Show your access level of an entity.", {200: "Rights"})
def _of_entity(request: ApiRequest) -> Response:
    level = request.operations.level_of_entity(request.principal, request.path_params["entity"])
    return JSONResponse({"level": level})
