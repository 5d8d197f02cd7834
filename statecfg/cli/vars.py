"""Variables from the command line: `key=value`, a JSON object, or `@FILE`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from statecfg.playbook.inventory import RESERVED, RESERVED_DETAIL
from statecfg.problems import InvalidInput, inputs, problem


def extra_vars(arguments: Iterable[str], base: Path) -> Mapping[str, Any]:
    """Return the variables of all `-e` arguments. Later ones override earlier ones.

    The value in `key=value` is always a string; JSON provides numbers and booleans.

    :param arguments: the arguments as written
    :param base: the directory that `@FILE` is relative to
    :raises click.BadParameter: an argument is wrong
    :raises InvalidInput: a YAML file is wrong
    """
    variables: dict[str, Any] = {}
    for text in arguments:
        variables.update(_one(text, base))
    return variables


def _one(text: str, base: Path) -> Mapping[str, Any]:
    if text.startswith("@"):
        return _file(base / text[1:])
    if text.lstrip().startswith("{"):
        return _object(text, "-e")
    name, sign, value = text.partition("=")
    if not sign:
        raise click.BadParameter(f"{text!r} is not key=value, a JSON object or @FILE", param_hint="-e")
    name = name.strip()
    if not name.isidentifier():
        help_text = "use letters, digits and _, and don't start with a digit"
        raise click.BadParameter(f"`{name}` is not a valid variable name: {help_text}", param_hint="-e")
    return _unreserved({name: value}, "-e")


def _unreserved(variables: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return the variables. Refuse a name that statecfg uses."""
    if RESERVED in variables:
        lead = f"{where}: " if where != "-e" else ""
        raise click.BadParameter(f"{lead}{RESERVED_DETAIL}; choose another name", param_hint="-e")
    return variables


def _file(path: Path) -> Mapping[str, Any]:
    inputs.note("variables", path)
    if path.suffix == ".json":
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.BadParameter(f"{path}: {error}", param_hint="-e") from error
        return _object(text, str(path))
    from statecfg.dialects import yaml_text, yaml_tree

    tree = yaml_text.load(path, "a mapping of names to values")
    value = yaml_tree.plain(tree)
    if not isinstance(tree, yaml_tree.Mapping):
        raise click.BadParameter(f"{path} must hold a mapping of names to values", param_hint="-e")
    if RESERVED in tree.keys:
        location = tree.keys[RESERVED].location
        raise InvalidInput([problem("SC0308", RESERVED_DETAIL, "choose another name", location)])
    return dict(value)


def _object(text: str, where: str) -> Mapping[str, Any]:
    from statecfg.remote.hooks import ruby_json as hook_json

    try:
        value = hook_json.parse(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise click.BadParameter(f"{where} is not valid JSON: {error}", param_hint="-e") from error
    if not isinstance(value, dict):
        raise click.BadParameter(f"{where} is not a JSON object", param_hint="-e")
    return _unreserved(value, where)
