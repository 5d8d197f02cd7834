"""The types of attributes that annotations of node types use, each with its rule."""

from __future__ import annotations

import sys
from typing import Any, Dict, Mapping, Sequence, TypedDict

from statecfg.remote.graph.model import Blob  # noqa: F401  # the annotation of `Content` names it
from statecfg.remote.graph.value_rules import (
    MAX_ID,
    MAX_NAME,
    absolute_path,
    account_name,
    argv,
    content,
    encodable,
    local_path,
    marker,
    mode,
    mode_change,
    no_nul,
    one_line,
    owner_name,
    package_name,
    pattern,
    pause,
    plain_name,
    seconds,
    suffix,
    within,
    working_directory,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional

    # A condition of `when_host`. `is` and `not` can't be names of attributes.
    HostCondition = TypedDict(
        "HostCondition",
        {
            "path": str, "is": str, "contains": str, "package": str, "version": str, "unit": str, "user": str,
            "group": str, "command": "Sequence[str] | str", "read_only": bool, "reads": Sequence[str],
            "not": Any, "any": Sequence[Any],
        },
        total=False,
    )  # fmt: skip

    # The list of `for_each_host`.
    HostList = TypedDict(
        "HostList",
        {
            "glob": str, "is": str, "users": Dict[str, Any], "mounts": Dict[str, Any],
            "command": "Sequence[str] | str", "read_only": bool, "reads": Sequence[str],
        },
        total=False,
    )  # fmt: skip

if TYPE_CHECKING or sys.version_info >= (3, 9):
    from typing import Annotated
else:

    class Annotated:
        """Replaces `typing.Annotated`, which Python 3.8 lacks, by the annotated type."""

        def __class_getitem__(cls, item: Any) -> Any:
            return item[0]


Attrs = Mapping[str, Any]
"""The attributes of a node: name → value."""


class NodeOptions(TypedDict, total=False):
    """The options that every node takes in addition to its type's attributes."""

    provides: str
    requires: Sequence[Any]
    restart_on: Sequence[Any]
    tags: Sequence[str]
    protect: bool
    allow_lockout: bool
    take_over: bool
    when_host: "HostCondition | Sequence[HostCondition]"
    for_each_host: "HostList"


class Rule:
    """A check of one value, with a description.

    :param expects: what it accepts, for messages: "an absolute path"
    :param function: returns the value, possibly converted; raises ValueError (or `Wrong`, with help)
    :param schema: its part of the JSON Schema
    :param takes: it also checks the value's type, so no other check is needed
    :param shown: reports show the value, so it can't be a secret
    """

    __slots__ = ("expects", "function", "schema", "shown", "takes")

    def __init__(
        self,
        expects: str,
        function: Callable[[Any], Any],
        schema: Optional[Dict[str, Any]] = None,
        takes: bool = False,
        shown: bool = False,
    ) -> None:
        self.expects, self.function, self.schema = expects, function, schema or {}
        self.takes, self.shown = takes, shown

    def __call__(self, value: Any) -> Any:
        return self.function(value)


AbsolutePath = Annotated[str, Rule("an absolute path", absolute_path, {"pattern": "^/"}, shown=True)]
WorkingDirectory = Annotated[str, Rule("an absolute path", working_directory, {"pattern": "^/"}, shown=True)]
Text = Annotated[str, Rule("a string", encodable)]
NoNul = Annotated[str, Rule("a string without NUL", no_nul)]
Line = Annotated[str, Rule("one line", one_line)]
Marker = Annotated[str, Rule("one line with {mark}", marker, {"pattern": r"\{mark\}"}, shown=True)]
PublicLine = Annotated[str, Rule("one line", one_line, shown=True)]  # others can read it, for example in arguments
Name = Annotated[str, Rule("a name", plain_name, {"minLength": 1, "maxLength": MAX_NAME}, shown=True)]
Names = Annotated["list[Name]", Rule("a list of names", list)]
Mode = Annotated[
    str, Rule('a mode such as "0644"', mode, {"type": "string", "pattern": "^(0o)?[0-7]{3,5}$"}, takes=True)
]
ModeChange = Annotated[
    str,
    Rule(
        'a mode such as "0644" or "u=rw,go=r"',
        mode_change,
        {"type": "string", "pattern": "^((0o)?[0-7]{3,5}|[ugoa]+[-+=].*)$"},
        takes=True,
    ),
]
UserName = Annotated[str, Rule("a user name", account_name("user"), {"minLength": 1, "maxLength": 32}, shown=True)]
GroupName = Annotated[str, Rule("a group name", account_name("group"), {"minLength": 1, "maxLength": 32}, shown=True)]
Owner = Annotated[str, Rule("a user name or id", owner_name("user"), {"minLength": 1})]
OwnerGroup = Annotated[str, Rule("a group name or id", owner_name("group"), {"minLength": 1})]
Id = Annotated[int, Rule("a user or group id", within(0, MAX_ID), {"minimum": 0, "maximum": MAX_ID})]
Port = Annotated[int, Rule("a port", within(1, 65535), {"minimum": 1, "maximum": 65535})]
Seconds = Annotated[float, Rule("a number of seconds", seconds, {"exclusiveMinimum": 0})]
Pause = Annotated[float, Rule("a number of seconds, 0 for none", pause, {"minimum": 0, "maximum": 3600})]
Argv = Annotated["list[str]", Rule("a list of a program and its arguments", argv, {"minItems": 1})]
LocalPath = Annotated[str, Rule("a path on this machine", local_path, {"minLength": 1}, shown=True)]
Suffix = Annotated[str, Rule("a suffix such as .bak", suffix, {"minLength": 1, "maxLength": 64}, shown=True)]
PackageName = Annotated[str, Rule("the name of a package", package_name, {"minLength": 1})]
Content = Annotated["str | bytes | Blob", Rule("a string or bytes", content, {"type": "string"}, takes=True)]
Pattern = Annotated[str, Rule("a regular expression", pattern, {"format": "regex"})]
