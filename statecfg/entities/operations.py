"""All calls about entities, one method per API call, for the server and the command line."""

from __future__ import annotations

from statecfg.entities.access_calls import AccessCalls
from statecfg.entities.interfaces import InterfaceCalls
from statecfg.entities.lifecycle import EntityCalls
from statecfg.entities.metadata import MetadataCalls
from statecfg.entities.tasks import TaskCalls
from statecfg.entities.types import TypeCalls

__all__ = ["Operations"]


class Operations(InterfaceCalls, TypeCalls, EntityCalls, MetadataCalls, TaskCalls, AccessCalls):
    """All calls. See `Calls` for the parameters."""
