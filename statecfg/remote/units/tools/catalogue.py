"""The list of the tools that hooks call, such as `relation-get` and `config-get`, and how a call is executed."""

from __future__ import annotations

import os

from statecfg.remote.units.tools import commands as do
from statecfg.remote.units.tools import output as tool_output
from statecfg.remote.units.tools.options import FAILED, USAGE, Syntax, ToolError, ToolOption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Mapping, Optional, Sequence

RELATION = ToolOption(("-r", "--relation"), "ID", "an id from relation-ids; the default is the hook's relation", "-r")
OF_SERVICE = ToolOption(("--app",), "", "settings of the whole service: not supported, only units have settings")
OTHER_SERVICE = ToolOption(("--app",), "", "the name of the remote service")
STATUS_OF_SERVICE = ToolOption(
    ("--application",), "", "the status of the whole service: not supported, only units have a status"
)
FROM_FILE = ToolOption(
    ("--file",), "FILE", "read the settings from a file: a map of strings and nulls in YAML or JSON; - is stdin"
)
ADDRESSES = tuple(
    ToolOption((f"--{name}",), "", "print only this value")
    for name in ("primary-address", "bind-address", "ingress-address", "egress-subnets")
)
PAIRS = "[KEY=VALUE | KEY=@FILE | KEY=@- | @FILE | -]…"
PORT = "PORT[-PORT][/tcp | /udp] | icmp"


class Tool:
    """A tool: its function, its command line, and its output formats in addition to the common ones.

    :param anonymous: whether it may be called without a hook
    """

    def __init__(
        self,
        run: Callable[[do.ToolCall], Any],
        syntax: Syntax,
        formatters: Optional[Mapping[str, tool_output.Formatter]] = None,
        anonymous: bool = False,
    ) -> None:
        self.run, self.syntax, self.formatters, self.anonymous = run, syntax, formatters or {}, anonymous


def _log(name: str) -> Tool:
    options = (
        ToolOption(
            ("-l", "--level", "--log-level"),
            "LEVEL",
            "CRITICAL, ERROR, WARNING, INFO, DEBUG, TRACE or a number; the default is INFO",
        ),
        ToolOption(("--debug",), "", "as -l DEBUG"),
    )
    syntax = Syntax(name, "Write a message to the log of the run.", "MESSAGE…", 1, None, options, lenient=True)
    return Tool(do.juju_log, syntax, anonymous=True)


def _of_actions(group: str) -> Sequence[Tool]:
    refuse = "Fail, because hooks are not actions."
    leave = "Print a message and do nothing else, because hooks are not actions."
    return (
        *(
            Tool(do.action, Syntax(f"{group}-{verb}", refuse, "[WORD]…", 0, None, lenient=True))
            for verb in ("get", "fail")
        ),
        Tool(do.action_set, Syntax(f"{group}-set", leave, "[WORD]…", 0, None, lenient=True)),
    )


_RELATION_GET = "Print the settings of a unit in a relation, or one setting. The default unit is $JUJU_REMOTE_UNIT."
_RELATION_SET = (
    "Set settings of this unit in a relation. An empty value deletes one. Others see them once the hook succeeds."
)
_LEADER_SET = "Set settings that all units of this service can read. Only the leader may do this."
_NETWORK_GET = "Print the addresses of this unit, which are the same for every binding."
_RELATION_IDS = "Print the relations with a name. The default is $JUJU_RELATION."
_LIST = (
    Tool(
        do.relation_get,
        Syntax("relation-get", _RELATION_GET, "[NAME | -] [UNIT]", 0, 2, (RELATION, OF_SERVICE)),
        {"shell": tool_output.shell},
    ),
    Tool(do.relation_set, Syntax("relation-set", _RELATION_SET, PAIRS, 0, None, (RELATION, OF_SERVICE, FROM_FILE))),
    Tool(
        do.relation_list,
        Syntax("relation-list", "Print the remote units.", "", 0, 0, (RELATION, OTHER_SERVICE)),
        {"eval": tool_output.members},
    ),
    Tool(do.relation_ids, Syntax("relation-ids", _RELATION_IDS, "[NAME]", 0, 1)),
    Tool(
        do.config_get,
        Syntax(
            *("config-get", "Print the settings of the service, or one of them.", "[NAME]", 0, 1),
            options=(ToolOption(("--all", "-a"), "", "all settings, the default"),),
        ),
    ),
    Tool(do.unit_get, Syntax("unit-get", "Print an address of this unit.", "private-address | public-address", 1, 1)),
    _log("juju-log"),
    _log("function-log"),
    _log("action-log"),
    Tool(do.open_port, Syntax("open-port", "Open a port of this host.", PORT, 1, 1)),
    Tool(do.close_port, Syntax("close-port", "Close a port of this host.", PORT, 1, 1)),
    Tool(do.opened_ports, Syntax("opened-ports", "Print the open ports.", "")),
    Tool(do.is_leader, Syntax("is-leader", "Print whether this unit is the leader of its service.", "")),
    Tool(
        do.leader_get,
        Syntax("leader-get", "Print the settings that the leader set, or one of them.", "[NAME | -]", 0, 1),
    ),
    Tool(do.leader_set, Syntax("leader-set", _LEADER_SET, PAIRS, 0, None, (FROM_FILE,))),
    Tool(
        do.status_set,
        Syntax("status-set", "Set the status of this unit.", "STATUS [MESSAGE]", 1, 2, (STATUS_OF_SERVICE,)),
    ),
    Tool(
        do.status_get,
        Syntax(
            *("status-get", "Print the status of this unit.", ""),
            options=(STATUS_OF_SERVICE, ToolOption(("--include-data",), "", "also print the message")),
        ),
    ),
    Tool(
        do.application_version_set,
        Syntax("application-version-set", "Set the version of the program that the service runs.", "VERSION", 1, 1),
    ),
    Tool(do.goal_state, Syntax("goal-state", "Print the expected units and relations.", "")),
    Tool(do.network_get, Syntax("network-get", _NETWORK_GET, "BINDING", 1, 1, (RELATION, *ADDRESSES))),
    Tool(
        do.storage_list,
        Syntax("storage-list", "Print the storages of this unit. It never has any.", "[NAME]", 0, 1),
    ),
    Tool(
        do.storage_get,
        Syntax(
            *("storage-get", "Fail, because units have no storage.", "[NAME]", 0, 1),
            options=(ToolOption(("-s",), "ID", "the storage; for the agent's socket, write --socket"),),
        ),
    ),
    Tool(
        do.resource_get,
        Syntax(
            "resource-get", "Fail, because services have no resources. Declare files in the playbook.", "NAME", 1, 1
        ),
    ),
    *_of_actions("action"),
    *_of_actions("function"),
)
TOOLS: Dict[str, Tool] = {tool.syntax.tool: tool for tool in _LIST}


def main(name: str, arguments: Sequence[str]) -> int:
    """Call a tool; return its exit status: 0 for success, 1 for a failure, 2 for an invalid command line.

    For some errors of the agent, print a message and return 0, as juju of 2012 did.
    """
    tool = TOOLS[name]
    try:
        _call(tool, arguments)
        return 0
    except ToolError as problem:
        text = str(problem) if problem.status == USAGE else f"{name}: error: {problem}"
        tool_output.complain(text)
        return problem.status
    except OSError as problem:
        tool_output.complain(f"{name}: error: {problem.filename or 'stdout'}: {problem.strerror}")
        return FAILED


def _call(tool: Tool, arguments: Sequence[str]) -> None:
    line = tool.syntax.parse(arguments)
    if line.has("--help"):
        tool_output.put(1, tool.syntax.help_text().encode())
        return
    path = line.options.get("--output", "")
    try:
        sink = tool_output.sink(path)
    except OSError as problem:
        tool.syntax.wrong(f"argument -o/--output: can't open '{path}': {problem}")
    call = do.ToolCall(line, tool.syntax, os.environ)
    call.connect(tool.anonymous)
    result = tool.run(call)
    if result is not do.NOTHING:
        try:
            tool_output.write(result, line.options.get("--format", "smart"), sink, tool.formatters)
        except OSError as problem:
            raise ToolError(f"{'stdout' if sink == 1 else path}: {problem.strerror}") from None
