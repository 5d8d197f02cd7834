"""Databases of servers, as entries of a facet: what removes them, and what does not come back."""

from __future__ import annotations

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import ActionSpec
from statecfg.resources.shared import records


class DatabaseEntry(FacetEntry):
    """A database. It is removed only without content, or if the node has `remove_content`."""

    noun = "the database"
    permission = ("remove_content: true removes it with its content", "with remove_content: true, it is removed")

    def content(self) -> int:
        """Return the number of tables and views that users have made in the database.

        :raises CheckError: if it can't be read
        """
        raise NotImplementedError

    def in_the_way(self, now: records.Fields) -> str:
        """Return a message about the content of the database, unless the node may remove it."""
        inside = 0 if self.attrs.get("remove_content") else self.content()
        return f"{self.title()} contains {inside} tables and views" if inside else ""

    def restore(self, was: records.Fields) -> ActionSpec:
        """Report that the former content is lost."""
        return ActionSpec(left=[f"{self.title()} is not restored: statecfg does not record its content"])
