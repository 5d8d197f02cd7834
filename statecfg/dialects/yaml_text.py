"""Read strict YAML files: into a tree of values with source locations, or into a list of problems.

Values that a reader could misunderstand are not converted: `NO`, `0755`, `1:30`, `3.10` and similar values are errors.
So are duplicate keys, unknown tags, and aliases that expand to too many values.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import yaml

from statecfg.dialects import scalars
from statecfg.dialects.yaml_composer import LOADER, Composer
from statecfg.dialects.yaml_tree import YamlNode
from statecfg.problems import InvalidInput, SourceLocation, problem, report, suggest_file

MAX_BYTES = 16 * 1024 * 1024


def load(path: str | Path, shape: str, display_name: str | None = None) -> YamlNode:
    """Read a YAML file.

    :param path: the file
    :param shape: the expected content, for the message about an empty file
    :param display_name: the name of the file in source locations; default: `path`
    :returns: the root: a `Mapping`, `Sequence` or `Scalar`
    :raises InvalidInput: with all problems in the file
    """
    name = display_name or str(path)
    return parse(content(path, name), name, shape)


def read(path: str | Path, shape: str) -> YamlNode:
    """Read a YAML file like `load`, but report problems of single values and mark these values as `wrong`.

    :raises InvalidInput: the file is not YAML, empty or too large
    """
    name = str(path)
    composer = Composer(scalars.decode(content(path, name), name), name, shape)
    root = composer.compose()
    if root is None:
        raise InvalidInput(composer.problems)
    report(*composer.problems)
    return root


def text_of(path: str | Path) -> str:
    """Return the text of a YAML file.

    :raises InvalidInput: the file can't be read, or is not plain UTF-8
    """
    return scalars.decode(content(path), str(path))


def parse(data: bytes | str, file: str, shape: str) -> YamlNode:
    """Read YAML from bytes or text.

    :param file: the name of the file in source locations
    :param shape: the expected content, for the message about an empty text
    :raises InvalidInput: with all problems in the text
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    text = scalars.decode(raw, file)
    composer = Composer(text, file, shape)
    root = composer.compose()
    if root is None or composer.problems:
        raise InvalidInput(composer.problems)
    return root


def foreign(path: Path) -> Any:
    """Return the value of a file that was written for another program, by the rules of YAML 1.1.

    `no` is false, and the last of several equal keys wins.

    :returns: the value; None for an empty file
    :raises InvalidInput: the file can't be read or is not YAML
    """
    text = scalars.decode(content(path, str(path)), str(path))
    try:
        return yaml.load(text, LOADER)  # noqa: S506  # a safe loader
    except yaml.MarkedYAMLError as error:
        raise InvalidInput([scalars.syntax_problem(error, text, str(path))]) from None
    except (ValueError, RecursionError) as error:  # an invalid date or number
        raise InvalidInput([problem("SC0315", f"{error}", "put it in quotes", SourceLocation(str(path), 1))]) from None


def content(path: str | Path, name: str | None = None) -> bytes:
    """Return the bytes of a file.

    :param name: the name of the file in source locations; default: `path`
    :raises InvalidInput: the file can't be read, is too large or not a regular file
    """
    name = name or str(path)
    location = SourceLocation(name, 1, None)
    try:
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                detail = f"{name} is not a regular file"
                raise InvalidInput([problem("SC0301", detail, "write the path of a regular file", location)])
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        help_text = suggest_file(path) or "check the path"
        raise InvalidInput([problem("SC0301", f"{name}: {error.strerror}", help_text, location)]) from error
    if len(data) > MAX_BYTES:
        size = f"{status.st_size:,} bytes; the maximum is {MAX_BYTES:,}"
        raise InvalidInput([problem("SC0302", size, "split the file", location)])
    return data
