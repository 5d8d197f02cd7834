"""The versions of the API, and the version and form that an Accept header requests."""

from __future__ import annotations

import re

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.errors import StatecfgError

# The API versions of the products 10.2 to 10.6, whose clients we know.
SUPPORTED = (35.0, 35.1, 35.2, 35.3, 36.0, 36.1, 36.2, 36.3, 37.0, 37.1, 37.2, 37.3, 38.0, 38.1, 39.0, 39.1)
LATEST = SUPPORTED[-1]
_VERSION = re.compile(r"[0-9]{1,3}\.[0-9]{1,2}")
LONGEST = 1000


class Unsupported(StatecfgError):
    """The client requested an unknown version.

    :param version: as written in the header
    """

    def __init__(self, version: str) -> None:
        self.version = version
        super().__init__(version)


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a client accepts.

    :param version: the version of the API
    :param xml: it names XML, and no JSON before it
    :param json: it names JSON, and no XML before it
    """

    version: float
    xml: bool
    json: bool


def accepted(header: str) -> Accepted:
    """Parse an Accept header such as ``application/json;version=36.0``.

    Without a version, the latest one applies. The first media type is used; weights are ignored. Source: the original
    API's page of versions; RFC 9110, 12.5.1.

    :raises Unsupported: the version is unknown
    """
    version, form = None, ""
    for entry in header[:LONGEST].split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        for name, _, value in (parameter.partition("=") for parameter in parameters):
            # Clients that have not requested the versions yet send `version=`.
            if name.strip().lower() == "version" and value.strip() and version is None:
                version = _version(value.strip().strip('"'))
        if not form and (match := re.search(r"(?i)[/+](json|xml)$", media)):
            form = match[1].lower()
    return Accepted(LATEST if version is None else version, form == "xml", form == "json")


def _version(text: str) -> float:
    if not _VERSION.fullmatch(text) or float(text) not in SUPPORTED:
        raise Unsupported(text[:20])
    return float(text)
