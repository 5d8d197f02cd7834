"""Commands: the rules for their attributes, and how a script is read. Only the controller uses this module."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Any

from statecfg.remote.graph.wrong_values import PublicSecret, Wrong, show
from statecfg.resources.programs.commands import FACETS
from statecfg.resources.shared import records

MOST_RETRIES = 1000
PROGRAMS = ("argv", "shell", "script")
GUARDS = ("creates", "removes", "unless", "onlyif")
FAILED_WHEN = ("exit", "stdout", "stderr")


def check(attrs: records.Attrs) -> None:
    """Check the attributes of a command together.

    :raises ValueError: if they contradict each other, a command line contains a secret, or a value is invalid
    """
    if sum(attrs.get(name) is not None for name in PROGRAMS) != 1:
        raise ValueError("either argv, shell or script is required")
    for name in ("shell", "unless", "onlyif", "undo"):
        if hasattr(attrs.get(name), "reveal"):
            raise PublicSecret('put it into `env`, and write "$NAME"', name)
    for name in attrs.get("env") or ():
        if not name or "=" in name or "\0" in name:
            raise Wrong(f"{show(name)} is not the name of a variable", "write a name without `=`")
    _needs(attrs, "interpreter", "script")
    _needs(attrs, "retry_delay", "retries")
    check_effects(attrs.get("effects") or {})
    _check_codes(attrs.get("expect") or ())
    if attrs.get("failed_when") is not None:
        _check_failed_when(attrs["failed_when"], attrs.get("expect") or ())
    if not 0 <= (attrs.get("retries") or 0) <= MOST_RETRIES:
        raise ValueError(f"retries is a number from 0 to {MOST_RETRIES}")
    if not isinstance(attrs.get("retry_delay", 0), (int, float)) and not attrs["retry_delay"]:
        raise ValueError("retry_delay is an empty list; write at least one delay")
    guards = [name for name in GUARDS if attrs.get(name) is not None]
    if attrs.get("always") and guards:
        raise Wrong(f"always contradicts {guards[0]}", "a command with always runs in every apply: remove one of them")


def _needs(attrs: records.Attrs, name: str, other: str) -> None:
    if attrs.get(name) is not None and attrs.get(other) is None:
        raise ValueError(f"{name} requires {other}")


def _check_codes(codes: Sequence[Any]) -> None:
    for code in codes:
        if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 255:
            raise ValueError(f"an exit status is a number from 0 to 255, not {show(code)}")


def _check_failed_when(failed_when: records.Attrs, expect: Sequence[int]) -> None:
    if not failed_when:
        raise ValueError(f"failed_when is empty; valid keys: {', '.join(FAILED_WHEN)}")
    for key, value in failed_when.items():
        if key not in FAILED_WHEN:
            raise ValueError(f"failed_when has no key {key}; valid keys: {', '.join(FAILED_WHEN)}")
        if key == "exit":
            codes = exit_statuses(value)
            _check_codes(codes)
            both = sorted(set(codes).intersection(expect))
            if both:
                raise ValueError(f"the exit status {both[0]} is in expect and in failed_when")
            continue
        if not isinstance(value, str) or not value:
            raise ValueError(f"{key} of failed_when is a regular expression, not {show(value)}")
        try:
            re.compile(value)
        except re.error as error:
            raise Wrong(
                f"{key} of failed_when is not a valid regular expression: {error}",
                "put a backslash before characters that are meant literally",
            ) from None


def exit_statuses(value: Any) -> list[Any]:
    """Return the exit statuses of `failed_when`, which are one value or a list."""
    single = isinstance(value, (str, int, float)) or value is None
    return [value] if single else list(value)


def check_effects(effects: records.Attrs) -> None:
    """Check the form of declared effects.

    :raises ValueError: if a key or value is invalid
    """
    for key, value in effects.items():
        if key not in ("files", *FACETS):
            raise ValueError(f"effects has no key {key}; valid keys: files, {', '.join(FACETS)}")
        if key == "files":
            if isinstance(value, str) or not all(isinstance(path, str) and path.startswith("/") for path in value):
                raise ValueError("the files of effects are a list of absolute paths")
        elif not isinstance(value, bool):
            raise ValueError(f"{key} of effects is true or false")


def with_script(node: Any, context: Any) -> Any:
    """Return the node as it is sent: with the script's content and interpreter, and exit statuses as lists.

    :raises ValueError: if nothing says which program runs the script
    """
    attrs = node.attrs
    changes: dict[str, Any] = {}
    rules = attrs.get("failed_when")
    if rules is not None and "exit" in rules:
        changes["failed_when"] = {**rules, "exit": exit_statuses(rules["exit"])}
    if attrs.get("script") is not None:
        name = attrs["script"]
        content = context.read(node, name)
        changes["script"] = {"name": posixpath.basename(name), "content": content}
        if attrs.get("interpreter") is None:
            changes["interpreter"] = interpreter(name, content.read()[:4096])
    return node.with_attrs(**changes) if changes else node


def interpreter(name: str, start: bytes) -> list[str]:
    """Return the program that the first line of a script names, and its argument: the kernel passes at most one.

    :param name: the script's name, for messages
    :param start: the first bytes of its content
    :raises Wrong: if the line names no program
    """
    line = start.partition(b"\n")[0].decode("utf-8", "replace")
    if line.endswith("\r"):
        raise Wrong(f"the lines of {name} end with CR LF, so the host cannot run it", "save it with LF line ends")
    words = line[2:].strip(" \t").split(None, 1)
    if not line.startswith("#!") or not words or not words[0].startswith("/"):
        text = "the first line of %s does not name the program that runs it"
        raise Wrong(text % name, 'write a first line such as "#!/bin/sh", or set interpreter: [bash, -eu]')
    return words
