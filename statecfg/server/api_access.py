"""Access controls of types, entities and behaviors over HTTP."""

from __future__ import annotations

from starlette.responses import Response

from statecfg.entities import access_calls, shapes
from statecfg.entities.calls import part
from statecfg.entities.document import Shape
from statecfg.entities.model import LEVELS
from statecfg.entities.operations import Operations
from statecfg.entities.problems import forbidden
from statecfg.server.auth import AUTHOR, VIEWER
from statecfg.server.parameters import PAGED, listing, listing_by
from statecfg.server.request import ApiRequest
from statecfg.server.resource import ApiResource
from statecfg.server.responses import one, page
from statecfg.server.routing import Routes

routes = Routes()
_LEVELS = "/cloudapi/1.0.0/accessLevels"
_TYPE, _ENTITY = "/cloudapi/1.0.0/entityTypes/{type}", "/cloudapi/1.0.0/entities/{entity}"


@routes("GET", _LEVELS, VIEWER, "List the access levels.", {200: "AccessLevels"}, query=PAGED)
def _list_levels(request: ApiRequest) -> Response:
    return page(request, part(LEVELS, listing(request)), _level)


@routes("GET", f"{_LEVELS}/{{level}}", VIEWER, "Show an access level.", {200: "AccessLevel"})
def _get_level(request: ApiRequest) -> Response:
    if request.path_params["level"] not in LEVELS:
        raise forbidden(request.path_params["level"][:200])
    return one(request, _level, request.path_params["level"])


def _level(id: str, _: float) -> Shape:
    return {"id": id, "name": id.rpartition(":")[2], "description": None, "readOnly": True}


_access = ApiResource(routes, "Access", "Accesses", shapes.grant, listing_by(access_calls.FIELDS))
for _path, _what in ((f"{_TYPE}/accessControls", "entity type"), (f"{_ENTITY}/accessControls", "entity")):
    _one, _full = f"{_path}/{{grant}}", f"Requires Full Control of the {_what}."
    _access.list(_path, VIEWER, f"List the access controls of an {_what}.", Operations.list_grants)
    _access.create(_path, AUTHOR, f"Give access to an {_what}. {_full}", Operations.add_grant)
    _access.replace(_path, AUTHOR, f"Replace all access controls of an {_what}. {_full}", Operations.replace_grants)
    _access.show(_one, VIEWER, f"Show an access control of an {_what}.", Operations.get_grant)
    _access.change(_one, AUTHOR, f"Change an access control of an {_what}. {_full}", Operations.update_grant)
    _access.delete(_one, AUTHOR, f"Revoke access to an {_what}. {_full}", Operations.delete_grant)

_path = f"{_TYPE}/behaviorAccessControls"
_ADD = "Set who may invoke a behavior. Requires Full Control of the type."
_REPLACE = "Replace the access controls of all behaviors of a type. Requires Full Control of the type."
_behavior = ApiResource(routes, "BehaviorAccess", "BehaviorAccesses", shapes.behavior_grant, PAGED)
_behavior.list(_path, VIEWER, "List who may invoke the behaviors of a type.", Operations.list_behavior_grants)
_behavior.create(_path, AUTHOR, _ADD, Operations.add_behavior_grant)
_behavior.replace(_path, AUTHOR, _REPLACE, Operations.replace_behavior_grants)
