"""Calls about interfaces and their behaviors."""

from __future__ import annotations

from typing import Any

from statecfg.entities.calls import Calls
from statecfg.entities.model import Behavior, Interface, Page, Principal, Query


class InterfaceCalls(Calls):
    """Calls about interfaces and their behaviors. Everybody reads them; administrators make and change them."""

    def create_interface(self, principal: Principal, body: Any) -> Interface:
        """Make an interface (name, vendor, nss, version; id and readonly are optional)."""
        raise NotImplementedError

    def get_interface(self, principal: Principal, id: str) -> Interface:
        """Return an interface."""
        raise NotImplementedError

    def list_interfaces(self, principal: Principal, query: Query) -> Page[Interface]:
        """Return a page of the interfaces."""
        raise NotImplementedError

    def update_interface(self, principal: Principal, id: str, body: Any) -> Interface:
        """Change an interface's name; vendor, nss and version can't be changed, nor anything while entities exist."""
        raise NotImplementedError

    def delete_interface(self, principal: Principal, id: str) -> None:
        """Remove an interface that no type implements, with its behaviors."""
        raise NotImplementedError

    def create_behavior(self, principal: Principal, interface: str, body: Any) -> Behavior:
        """Add a behavior (name, description, execution) to an interface."""
        raise NotImplementedError

    def get_behavior(self, principal: Principal, interface: str, behavior: str) -> Behavior:
        """Return a behavior of an interface."""
        raise NotImplementedError

    def list_behaviors(self, principal: Principal, interface: str, query: Query) -> Page[Behavior]:
        """Return a page of the behaviors of an interface."""
        raise NotImplementedError

    def update_behavior(self, principal: Principal, interface: str, behavior: str, body: Any) -> Behavior:
        """Change description and execution; a write-only key that is not given keeps its value."""
        raise NotImplementedError

    def delete_behavior(self, principal: Principal, interface: str, behavior: str) -> None:
        """Remove a behavior that is no hook of any type, with its overrides."""
        raise NotImplementedError
