"""Which versions of the API there are, and which one, in which form, a request's Accept header asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Those of the products whose clients we know: 10.2 to 10.6.
SUPPORTED = (35.0, 35.1, 35.2, 35.3, 36.0, 36.1, 36.2, 36.3, 37.0, 37.1, 37.2, 37.3, 38.0, 38.1, 39.0, 39.1)
LATEST = SUPPORTED[-1]
_VERSION = re.compile(r"[0-9]{1,3}\.[0-9]{1,2}")
LONGEST = 1000


class Unsupported(Exception):
    """The client asks for a version that there is not.

    :param version: as it is written in the header
    """

    def __init__(self, version: str) -> None:
        self.version = version
        super().__init__(version)


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a client accepts.

    :param version: of the API
    :param xml: whether it names XML, and not JSON before it
    :param json: whether it names JSON, and not XML before it
    """

    version: float
    xml: bool
    json: bool


def accepted(header: str) -> Accepted:
    """Return what an Accept header asks for: ``application/json;version=36.0``, the latest version without one.

    Raises Unsupported. A header that names several media types is read from its beginning. Source: the versions page of
    the API that we follow; RFC 9110, 12.5.1, without weights.
    """
    version, form = None, ""
    for entry in header[:LONGEST].split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        for name, _, value in (parameter.partition("=") for parameter in parameters):
            # Clients that don't know yet which versions there are say `version=`.
            if name.strip().lower() == "version" and value.strip() and version is None:
                version = _version(value.strip().strip('"'))
        if not form and (found := re.search(r"(?i)[/+](json|xml)$", media)):
            form = found[1].lower()
    return Accepted(LATEST if version is None else version, form == "xml", form == "json")


def _version(text: str) -> float:
    if not _VERSION.fullmatch(text) or float(text) not in SUPPORTED:
        raise Unsupported(text[:20])
    return float(text)
