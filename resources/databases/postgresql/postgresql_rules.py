"""Rules for objects of PostgreSQL. Only the controller uses this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.suggestions import did_you_mean
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.databases.postgresql import postgresql_grants

LONGEST = 63  # bytes of a name: NAMEDATALEN - 1


def check_name(text: str, what: str) -> None:
    """Check the name of a role, database, schema, table or extension.

    :param what: the attribute
    :raises Wrong: if PostgreSQL would shorten it or does not allow it
    """
    if not text or len(text.encode()) > LONGEST or "\0" in text:
        raise Wrong(f"{what}: {show(text)} can't be a name in PostgreSQL", f"write 1 to {LONGEST} bytes")
    if what in ("name", "role") and text.startswith("pg_"):
        raise Wrong(f"{what}: names that start with pg_ belong to PostgreSQL", "choose another name")


def check_grant(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a `postgresql_grant` together.

    :raises ValueError: if one is not valid, or they contradict each other
    """
    check_name(attrs["role"], "role" if attrs["role"].lower() != "public" else "grantee")
    check_name(attrs["database"], "database")
    if attrs.get("tables") is not None and attrs.get("sequences") is not None:
        raise ValueError("tables and sequences can't be combined; declare two nodes")
    for what in ("tables", "sequences"):
        if attrs.get(what) is not None and not len(attrs[what]):
            raise ValueError(f"{what} is empty; write names, or all")
        for each in () if attrs.get(what) in (None, "all") else attrs[what]:
            check_name(each, what)
    if attrs.get("default_for") is not None:
        check_name(attrs["default_for"], "default_for")
        if "all" not in (attrs.get("tables"), attrs.get("sequences")):
            raise ValueError(
                "default_for needs tables: all or sequences: all, because it is about objects of the future"
            )
    if not attrs["privileges"]:
        raise ValueError("privileges is empty")
    known = postgresql_grants.PRIVILEGES[postgresql_grants.object_type(attrs)]
    for word in attrs["privileges"]:
        if word.upper() not in (*known, "ALL", *(["TEMP"] if "TEMPORARY" in known else [])):
            help = did_you_mean(word, known) or f"use {', '.join(known)} or ALL"
            object_type = postgresql_grants.object_type(attrs)
            raise Wrong(f"privileges: {show(word)} is not valid for {object_type}", help)
