"""All routes, in the order of the documentation."""

from __future__ import annotations

from statecfg.server import (
    api_access,
    api_clients,
    api_definitions,
    api_entities,
    api_hosts,
    api_metadata,
    api_rights,
    api_runs,
    api_services,
    api_sessions,
    api_tasks,
    live,
    pages,
)
from statecfg.server.routing import ApiRoute

_MODULES = (
    api_definitions,
    api_entities,
    api_metadata,
    api_access,
    api_tasks,
    api_sessions,
    api_clients,
    api_hosts,
    api_runs,
    api_services,
    api_rights,
    pages,
    live,
)
ROUTES: tuple[ApiRoute, ...] = tuple(route for module in _MODULES for route in module.routes.declared)
