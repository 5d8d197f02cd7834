"""Variables from the command line: `key=value`, a JSON object, or `@FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from statecfg.problems import inputs


def extra_vars(arguments: Iterable[str], base: Path) -> dict[str, Any]:
    """Return the variables of all `-e` arguments. Later ones override earlier ones.

    The value in `key=value` is always a string; JSON provides numbers and booleans.

    :param arguments: the arguments as written
    :param base: the directory that `@FILE` is relative to
    :raises click.BadParameter: an argument is wrong
    """
    variables: dict[str, Any] = {}
    for text in arguments:
        variables.update(_one(text, base))
    return variables


def _one(text: str, base: Path) -> dict[str, Any]:
    if text.startswith("@"):
        return _file(base / text[1:])
    if text.lstrip().startswith("{"):
        return _object(text, "-e")
    name, sign, value = text.partition("=")
    if not sign or not name.strip().isidentifier():
        raise click.BadParameter(f"{text!r} is not key=value, a JSON object or @FILE", param_hint="-e")
    return {name.strip(): value}


def _file(path: Path) -> dict[str, Any]:
    inputs.note("variables", path)
    if path.suffix == ".json":
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise click.BadParameter(f"{path}: {problem}", param_hint="-e") from problem
        return _object(text, str(path))
    from statecfg.dialects import yaml_text, yaml_tree

    value = yaml_tree.plain(yaml_text.load(path, "a mapping of names to values"))
    if not isinstance(value, dict):
        raise click.BadParameter(f"{path} must hold a mapping of names to values", param_hint="-e")
    return dict(value)


def _object(text: str, where: str) -> dict[str, Any]:
    from statecfg.remote.hooks import ruby_json as hook_json

    try:
        value = hook_json.parse(text.encode("utf-8", "surrogatepass"))
    except ValueError as problem:
        raise click.BadParameter(f"{where} is not valid JSON: {problem}", param_hint="-e") from problem
    if not isinstance(value, dict):
        raise click.BadParameter(f"{where} is not a JSON object", param_hint="-e")
    return value
