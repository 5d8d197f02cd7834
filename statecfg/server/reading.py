"""From a request's bytes to what a handler is given: the query's parameters, the body, the version asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import parse_qsl, unquote

import anyio
from starlette.requests import ClientDisconnect, Request

from statecfg.entities.problems import ApiError
from statecfg.server import documents
from statecfg.server.bodies import LARGEST, bad, fields, parsed
from statecfg.server.exchange import Parameter, Route

PATIENCE = 30.0  # seconds in which a body has to arrive
MOST_PARAMETERS = 30
# What clients of the API send by habit, and what changes nothing here.
IGNORED = ("links",)
# It says that the filter is percent-encoded once more than the query is; a filter that is not stays what it is.
ENCODED = "filterEncoded"


def query(text: str, known: Iterable[Parameter]) -> dict[str, Any]:
    """Return the parameters of a query by name, each of its type, or its default.

    :raises ApiError: 400 for a parameter that is unknown, given twice, or has a wrong value
    """
    parameters = {parameter.name: parameter for parameter in known}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except ValueError:
        raise bad("The query can't be read.") from None
    values: dict[str, Any] = {name: each.schema.get("default") for name, each in parameters.items()}
    given: set[str] = set()
    for name, value in pairs:
        if name in given:
            raise bad(f"The query has {_shown(name)} twice.")
        given.add(name)
        if name in parameters:
            values[name] = _value(parameters[name], value)
        elif name != ENCODED and name not in IGNORED:
            near = get_close_matches(name, parameters, 1, 0.6)
            raise bad(f"The query has no {_shown(name)} here." + (f" Did you mean {near[0]}?" if near else ""))
    if (ENCODED, "true") in pairs and values.get("filter"):
        values["filter"] = _value(parameters["filter"], unquote(values["filter"]))
    return values


def _shown(name: str) -> str:
    return repr(name[:50])


def _value(parameter: Parameter, text: str) -> Any:
    schema, value = parameter.schema, text
    if schema["type"] == "boolean":
        # Clients in Python send True and False; the original takes any case.
        if text.lower() not in ("true", "false"):
            raise bad(f"{parameter.name} is true or false.")
        return text.lower() == "true"
    if schema["type"] == "integer":
        low, high = schema["minimum"], schema["maximum"]
        if not re.fullmatch(r"[0-9]{1,10}", text) or not low <= int(text) <= high:
            raise bad(f"{parameter.name} is a number from {low} to {high}.")
        return int(text)
    if len(text) > schema["maxLength"] or "\0" in text:
        raise bad(f"{parameter.name} is a text of at most {schema['maxLength']} characters.")
    return value


async def body(request: Request) -> bytes:
    """Return a request's body.

    :raises ApiError: 413 where it is larger than 1 MiB, 408 where it does not arrive in time
    """
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared[:20]) > LARGEST:
        raise _too_large()
    data = bytearray()
    try:
        with anyio.fail_after(PATIENCE):
            async for piece in request.stream():
                data += piece
                if len(data) > LARGEST:
                    raise _too_large()
    except TimeoutError:
        raise bad("The body did not arrive in time.", 408, "REQUEST_TIMEOUT") from None
    except ClientDisconnect:
        raise bad("The body is not whole.") from None
    return bytes(data)


def _too_large() -> ApiError:
    return bad(f"The body is larger than {LARGEST} bytes.", 413, "REQUEST_ENTITY_TOO_LARGE")


def content(route: Route, data: bytes, headers: Mapping[str, str]) -> Any:
    """Return what a body holds, checked against the document that the route takes; None where there is no body.

    Where there should be none, an empty object or null is none: many clients send that with whatever has no body.

    :raises ApiError: 400, or 415 for a body that is not of the right type
    """
    if not data:
        if route.request and not route.optional:
            raise bad("The request needs a body.")
        return None
    given = headers.get("content-type", "")
    if not route.request:
        if parsed(data, given) not in ({}, None):
            raise bad("The request must have no body.")
        return None
    if route.form:
        return fields(data, given)
    value = parsed(data, given)
    problem = documents.wrong(route.request, value)
    if problem:
        raise bad(f"The body is not what it should be: {problem}")
    return value
