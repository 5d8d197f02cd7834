"""Read and check the query and the body of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

import anyio
from starlette.requests import ClientDisconnect, Request

from statecfg.entities.problems import ApiError
from statecfg.problems import did_you_mean, sentence
from statecfg.server import documents
from statecfg.server.bodies import LARGEST, bad, fields, parsed
from statecfg.server.media import Body
from statecfg.server.parameters import QueryParameter

TIMEOUT = 30.0  # seconds in which a body must arrive
MOST_PARAMETERS = 30
# Clients of the original API always send these parameters. They have no effect here.
IGNORED = ("links",)
# With `filterEncoded=true`, the filter is percent-encoded twice.
ENCODED = "filterEncoded"


def query(text: str, declared: Iterable[QueryParameter]) -> Mapping[str, Any]:
    """Parse a query string.

    Starlette's `query_params` is not enough: it accepts invalid UTF-8, and duplicate and unknown parameters.

    :param declared: the parameters of the route
    :returns: name → converted value; the default if the parameter is missing
    :raises ApiError: 400 for invalid UTF-8, too many parameters, or a parameter that is unknown, duplicate or wrong
    """
    parameters = {parameter.name: parameter for parameter in declared}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except ValueError:
        raise bad("The query is not valid UTF-8, or has too many parameters.") from None
    values: dict[str, Any] = {name: parameter.schema.get("default") for name, parameter in parameters.items()}
    seen: set[str] = set()
    for name, value in pairs:
        if name in seen:
            raise bad(f"The query contains {_quoted(name)} twice.")
        seen.add(name)
        if name in parameters:
            values[name] = _value(parameters[name], value)
        elif name != ENCODED and name not in IGNORED:
            raise bad(f"Unknown query parameter {_quoted(name)}.{sentence(did_you_mean(name, parameters))}")
    if (ENCODED, "true") in pairs and values.get("filter"):
        values["filter"] = _value(parameters["filter"], unquote(values["filter"]))
    return values


def _quoted(name: str) -> str:
    return repr(name[:50])


def _value(parameter: QueryParameter, text: str) -> Any:
    schema, value = parameter.schema, text
    if schema["type"] == "boolean":
        # Clients in Python send True and False; the original API accepts any case.
        if text.lower() not in ("true", "false"):
            raise bad(f"{parameter.name} must be true or false.")
        return text.lower() == "true"
    if schema["type"] == "integer":
        low, high = schema["minimum"], schema["maximum"]
        if not re.fullmatch(r"[0-9]{1,10}", text) or not low <= int(text) <= high:
            raise bad(f"{parameter.name} must be an integer from {low} to {high}.")
        return int(text)
    if len(text) > schema["maxLength"] or "\0" in text:
        raise bad(f"{parameter.name} must be a string of at most {schema['maxLength']} characters.")
    return value


async def body(request: Request) -> bytes:
    """Return the body of a request.

    Starlette's `Request.body` is not enough: it has neither a limit nor a timeout.

    :raises ApiError: 413 for a body larger than 1 MiB; 408 if it does not arrive within TIMEOUT; 400 if it is
        incomplete
    """
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared[:20]) > LARGEST:
        raise _too_large()
    data = bytearray()
    try:
        with anyio.fail_after(TIMEOUT):
            async for piece in request.stream():
                data += piece
                if len(data) > LARGEST:
                    raise _too_large()
    except TimeoutError:
        raise bad("The body did not arrive in time.", 408, "REQUEST_TIMEOUT") from None
    except ClientDisconnect:
        raise bad("The body is incomplete.") from None
    return bytes(data)


def _too_large() -> ApiError:
    return bad(f"The body is larger than {LARGEST} bytes.", 413, "REQUEST_ENTITY_TOO_LARGE")


def content(body: Body | None, data: bytes, content_type: str) -> Any:
    """Parse a body and validate it against the document that the route takes.

    If the route takes no body, `{}` and `null` count as no body, because many clients always send one of them.

    :param body: the body that the route takes; None if it takes none
    :returns: the JSON value, or the fields of the form; None without a body
    :raises ApiError: 400 for a missing, unexpected or invalid body; 415 for a body of the wrong type
    """
    if not data:
        if body is not None and not body.optional:
            raise bad("The request needs a body.")
        return None
    if body is None:
        if parsed(data, content_type) not in ({}, None):
            raise bad("The request must not have a body.")
        return None
    if body.form:
        return fields(data, content_type)
    value = parsed(data, content_type)
    problem = documents.error(body.document, value)
    if problem:
        raise bad(f"The body is invalid: {problem}")
    return value
