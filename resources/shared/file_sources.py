"""The content of files, which the controller reads or renders. Hosts don't get this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.wrong_values import PublicSecret


def with_content(node: Any, context: Any, public: str = "") -> Any:
    """Return a node whose content is its source or its rendered template.

    :param public: what to do with a secret in a template if every user of the host can read the file
    """
    attrs = node.attrs
    content = attrs.get("content")
    if attrs.get("template") is not None:
        variables = dict(attrs.get("vars") or {})
        if public:
            content = Blob.of(context.render_public(node, attrs["template"], public, variables))
        else:
            content = Blob.of(context.render(node, attrs["template"], variables))
    elif attrs.get("source") is not None:
        content = context.read(node, attrs["source"])
    elif isinstance(content, (str, bytes, Blob)):  # a secret has another type and stays a secret until it is sent
        content = Blob.of(content)
    return node.with_attrs(content=content, source=None, template=None, vars=None)


def refuse_secret(value: Any, attribute: str, help: str) -> None:
    """Refuse a secret in an attribute that every user of the host can read. Other values of a host are allowed.

    :param value: the value of the attribute, which may be a list or a map
    :param help: where to put the secret instead
    :raises PublicSecret: if the value is or contains a secret
    """
    if isinstance(value, (Mapping, list, tuple)) or hasattr(value, "evolver"):  # a list of an attribute is persistent
        for item in value.values() if isinstance(value, Mapping) else value:
            refuse_secret(item, attribute, help)
    parts = value.secrets() if hasattr(value, "secrets") else ()
    if any(getattr(part, "is_secret", True) for part in parts):
        raise PublicSecret(help, attribute)
