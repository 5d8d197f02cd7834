"""The table of all routes: routing, permissions and the OpenAPI document are made from it, and from nothing else."""

from __future__ import annotations

from statecfg.server import (
    api_access,
    api_clients,
    api_definitions,
    api_entities,
    api_metadata,
    api_sessions,
    api_tasks,
    live,
    pages,
)
from statecfg.server.exchange import Route

ROUTES: tuple[Route, ...] = (
    *api_definitions.ROUTES,
    *api_entities.ROUTES,
    *api_metadata.ROUTES,
    *api_access.ROUTES,
    *api_tasks.ROUTES,
    *api_sessions.ROUTES,
    *api_clients.ROUTES,
    *pages.ROUTES,
    *live.ROUTES,
)
