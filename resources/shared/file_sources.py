"""The content of files, which the controller reads or renders. Hosts don't get this module."""

from __future__ import annotations

from typing import Any

from statecfg.remote.graph.model import Blob


def with_content(node: Any, context: Any) -> Any:
    """Return a node whose content is its source or its rendered template."""
    attrs = node.attrs
    content = attrs.get("content")
    if attrs.get("template") is not None:
        content = Blob.of(context.render(node, attrs["template"], dict(attrs.get("vars") or {})))
    elif attrs.get("source") is not None:
        content = context.read(node, attrs["source"])
    elif isinstance(content, (str, bytes, Blob)):  # a secret has another type and stays a secret until it is sent
        content = Blob.of(content)
    return node.with_attrs(content=content, source=None, template=None, vars=None)
