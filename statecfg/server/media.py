"""The bodies of requests and the XML of responses, as routes declare them."""

from __future__ import annotations

from statecfg.problems.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request.

    :param document: the name of its document
    :param optional: the body may be missing
    :param form: the body is a form, not JSON
    """

    document: str
    optional: bool = False
    form: bool = False


@dataclass(frozen=True, slots=True)
class Xml:
    """The XML of an answer.

    :param media_type: the media type of that XML
    :param default: the response is in XML unless the client asks for JSON; otherwise only if the client asks for XML
    """

    media_type: str
    default: bool = False
