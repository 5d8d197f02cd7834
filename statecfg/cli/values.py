"""Values on the command line, such as those of `statecfg hosts set KEY=VALUE`."""

from __future__ import annotations

import json
from typing import Any

import click

from statecfg.remote.wire.strict_json import loads


def json_or_text(text: str) -> Any:
    """Return the value of a JSON text, and any other text as a string.

    :raises click.BadParameter: the text is an object or an array in JSON, but is not strict
    """
    # Replace bytes that are not UTF-8, because databases don't accept them.
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        return loads(text, unique=True)
    except json.JSONDecodeError:
        return text
    except (ValueError, RecursionError) as problem:
        if not text.startswith(("{", "[")):
            return text  # such as NaN
        why = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise click.BadParameter(f"{text[:100]!r} is not strict JSON: {why}.") from None
