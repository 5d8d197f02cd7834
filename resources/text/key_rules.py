"""Keys of configuration files: the rules for their attributes. Only the controller uses this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.wrong_values import PublicSecret, show, type_words
from statecfg.resources.shared import paths, records, text_files

ALLOWED = ("path", "section", "key", "absent", "validate", "backup")  # together with absent


def check(attrs: records.Attrs, ini: bool = False) -> None:
    """Check the attributes of a key together.

    :param ini: whether the key is one name, and dots in it mean nothing
    :raises ValueError: if they contradict each other, or the key contains a secret or an empty name
    """
    paths.refuse_with_absent(attrs, ALLOWED)
    if not attrs.get("absent") and attrs.get("value") is None:
        raise ValueError("value is required unless absent is true")
    key = attrs["key"]
    parts = key.split(".") if isinstance(key, str) and not ini else key
    if not isinstance(key, str) and not hasattr(key, "reveal") and not key:
        raise ValueError("key is an empty list; write at least one name")
    for part in [parts] if isinstance(parts, str) or hasattr(parts, "reveal") else parts:
        if hasattr(part, "reveal"):
            raise PublicSecret("put it into `value`", "key")
        if not part:
            raise ValueError("key has an empty part; write the parts as a list if they contain dots")
    text_files.refuse_without_placeholder(attrs)


def check_ini(attrs: records.Attrs) -> None:
    """Check section, key and value of an INI file.

    :raises ValueError: if the file could not contain them
    """
    key, section, value = attrs["key"], attrs.get("section") or "", attrs.get("value")
    if hasattr(section, "reveal"):
        raise PublicSecret("put it into `value`", "section")
    if set("=:") & set(key) or key[0] in "#;[" or key != key.strip():
        raise ValueError(f"key: {show(key)} can't be a key of an INI file")
    if set("[]") & set(section) or section != section.strip():
        raise ValueError(f"section: {show(section)} can't be a section; write it without brackets")
    if isinstance(value, str) and (value != value.strip() or value.endswith("\\")):
        raise ValueError("value: an INI file can't keep spaces around a value, or a backslash at its end")


def check_simple(value: Any) -> None:
    """Check that a value is a string, a number, a boolean, or a list of these.

    :raises ValueError: if it is something else
    """
    if isinstance(value, Mapping):
        raise ValueError("value is a map; write one node for each of its keys")
    items = value if hasattr(value, "__iter__") and not isinstance(value, str) and not hasattr(value, "reveal") else []
    for item in items:
        if not isinstance(item, (str, int, float)) and not hasattr(item, "reveal"):
            raise ValueError(f"value: a list can't contain {type_words(item)}")
