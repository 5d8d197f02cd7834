"""Entries of facets with a line or file beside them, such as a kernel setting and its line for the next boot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import ActionSpec, HostNode
from statecfg.resources.shared import drop_ins, entries, files, records


class EntryWithTexts(FacetEntry):
    """An entry of a facet, and lines or files that are changed and restored before it."""

    def texts(self) -> Mapping[str, HostNode]:
        """Return the lines (see `entries.entry`) and whole files (see `drop_ins`) of the node.

        The keys are their names in the snapshot. The snapshot of one with the name "" is not apart.
        """
        return {"": self.node}

    def remembered_texts(self) -> Mapping[str, HostNode]:
        """Return the texts that the snapshot contains. Without a definition, these are all that the node manages."""
        return self.texts()

    def check(self) -> ActionSpec:
        """Compare the texts and the entry."""
        spec = ActionSpec()
        for text in self.texts().values():
            check = entries.check if "line" in text.attrs else drop_ins.check
            spec.actions += check(text, self.nodes, self.world)
        spec.actions += super().check().actions
        return spec

    def remember(self) -> dict[str, Any]:
        """Record the texts and the entry."""
        memory: dict[str, Any] = {}
        for name, text in self.remembered_texts().items():
            found = _helper(text).remember(text, self.world)
            memory.update({name: found} if name else found)
        return {**memory, **super().remember()}

    def undo(self, memory: records.Attrs) -> ActionSpec:
        """Restore the texts and the entry."""
        texts = self.texts().items()
        specs = [_helper(text).undo(text, memory[name] if name else memory, self.world) for name, text in texts]
        specs.append(super().undo(memory))
        actions = [action for spec in specs for action in spec.actions]
        return ActionSpec(actions, left=[text for spec in specs for text in spec.left])


def _helper(text: HostNode) -> Any:
    return entries if "line" in text.attrs else files
