"""The functions of the tools that hooks call. Each asks the agent and returns the value to print."""

from __future__ import annotations

from statecfg.remote.units import amp
from statecfg.remote.units.tools import output as tool_output
from statecfg.remote.units.tools.options import USAGE, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Sequence, Union

    from statecfg.remote.units.tools.options import Syntax, ToolLine

    Text = Union[str, bytes]

LEVELS = {"CRITICAL": 50, "FATAL": 50, "ERROR": 40, "WARNING": 30, "WARN": 30, "INFO": 20, "DEBUG": 10}
LEVELS.update(TRACE=5, NOTSET=0)
PIECE = 16_000  # maximum characters of a message in one command: each has at most four bytes
NOTHING = object()  # the result of a tool that prints nothing


class ToolCall:
    """One call of a tool: its command line, its environment, and the agent's socket."""

    def __init__(self, line: ToolLine, syntax: Syntax, environment: Mapping[str, str]) -> None:
        self.line, self.syntax, self.environment = line, syntax, environment
        self.socket, self.client = "", ""

    def connect(self, anonymous: bool) -> None:
        """Find the agent's socket and the hook's client id.

        :param anonymous: whether the call may lack a client id
        :raises ToolError: the socket or the client id is missing
        """
        variables = self.environment
        self.socket = (
            self.line.options.get("--socket") or variables.get("JUJU_AGENT_SOCKET") or variables.get("JUJU_SOCKET", "")
        )
        if not self.socket:
            raise ToolError(self.syntax.usage() + "\nNo JUJU_AGENT_SOCKET/-s option found", USAGE)
        self.client = self.line.options.get("--client-id") or variables.get("JUJU_CLIENT_ID", "")
        if not self.client and not anonymous:
            raise ToolError(self.syntax.usage() + "\nNo JUJU_CLIENT_ID/--client_id option found", USAGE)

    def ask(self, command: str, **values: Text) -> Dict[str, bytes]:
        """Send a command to the agent for this hook; return its answer.

        :raises ToolError: the command failed
        """
        from statecfg.remote.units.tools import client as tool_client

        try:
            return tool_client.ask(self.socket, command, {"client_id": self.client, **values})
        except tool_client.AgentError as problem:
            if problem.code == "NoSuchRelation":  # exit status 2: libraries conclude that there is no such relation
                self.syntax.wrong(f"argument -r: {problem}")
            raise

    def data(self, command: str, **values: Text) -> Any:
        """Send a command to the agent for this hook; return the JSON value of its answer.

        :raises ToolError: the command failed, or the answer is not JSON
        """
        import json

        answer = self.ask(command, **values)
        try:
            return json.loads(amp.gather("data", answer))
        except (ValueError, RecursionError) as problem:
            raise ToolError(f"the agent's answer is not JSON: {problem}") from None

    def relation(self) -> str:
        """Return the relation in the command line; "" for the hook's own. Refuse `--app`: only units have settings."""
        if self.line.has("--app"):
            self.syntax.wrong("argument --app: only units have settings, whole services have none")
        return self.line.options.get("-r", "")

    def name(self, number: int = 0) -> str:
        """Return the name of the requested setting; "" for all settings."""
        word = self.line.word(number)
        return "" if word == "-" else word


def relation_get(call: ToolCall) -> Any:
    """Return the settings of a unit in a relation, or one of them; None if the setting does not exist."""
    unit = call.line.word(1) or call.environment.get("JUJU_REMOTE_UNIT", "")
    answer = call.data("relation_get", unit_name=unit, setting_name=call.name(), relation_id=call.relation())
    # As in the original, the agent answers "" for a missing setting. Existing settings are never empty.
    answer = answer if answer != "" else None
    return {call.name(): answer} if call.name() and call.line.options.get("--format") == "shell" else answer


def _assignments(call: ToolCall) -> Dict[str, Text]:
    import json

    from statecfg.remote.units.tools.input import settings

    values = settings(call.line.words, call.line.options.get("--file", ""))
    return dict(amp.spread("json_blob", json.dumps(values, ensure_ascii=False)))


def relation_set(call: ToolCall) -> Any:
    """Set settings of this unit in a relation."""
    relation = call.relation()
    call.ask("relation_set", **_assignments(call), relation_id=relation)
    return None


def relation_list(call: ToolCall) -> Any:
    """Return the units on the other side of a relation, or the name of their service."""
    relation = call.line.options.get("-r", "")
    if call.line.has("--app"):
        return call.data("relation_service", relation_id=relation)
    answer = call.ask("ListRelationsCommand", relation_id=relation)
    return amp.decode_text(amp.gather("members", answer)).split()


def relation_ids(call: ToolCall) -> Any:
    """Return the ids of the relations with a name."""
    name = call.line.word(0) or call.environment.get("JUJU_RELATION", "")
    return amp.decode_text(amp.gather("ids", call.ask("relation_ids", relation_name=name))).split()


def config_get(call: ToolCall) -> Any:
    """Return the settings of the service, or one of them."""
    return call.data("config_get", option_name="" if call.line.has("--all") else call.line.word(0))


def unit_get(call: ToolCall) -> Any:
    """Return an address of this unit."""
    return amp.decode_text(call.ask("get_unit_info", setting_name=call.line.word(0)).get("data", b""))


def juju_log(call: ToolCall) -> Any:
    """Write a message to the log of the run."""
    from statecfg.remote.units.tools import client as tool_client

    level = _level("DEBUG" if call.line.has("--debug") else call.line.options.get("-l", "INFO"))
    text = " ".join(call.line.words)
    for start in range(0, len(text) or 1, PIECE):
        values = {"level": str(level), "message": text[start : start + PIECE]}
        if call.client:
            values["client_id"] = call.client
        tool_client.ask(call.socket, "LogCommand", values)
    return NOTHING


def _level(name: str) -> int:
    """Return the number of a level. For an unknown level, print a complaint and return INFO."""
    if name.isascii() and name.isdigit() and len(name) < 10:
        return int(name)
    if name.upper() not in LEVELS:
        tool_output.complain(f"Invalid log level {name}")
    return LEVELS.get(name.upper(), 20)


def open_port(call: ToolCall) -> Any:
    """Record that a port of the host should be reachable."""
    return _port(call, "open_port")


def close_port(call: ToolCall) -> Any:
    """Record that a port of the host need no longer be reachable."""
    return _port(call, "close_port")


def _port(call: ToolCall, command: str) -> Any:
    port, protocol = _port_words(call)
    call.ask(command, port=port, proto=protocol)
    return None


def _port_words(call: ToolCall) -> Sequence[str]:
    """Return the port (or FROM-TO) and the protocol in the command line.

    :raises ToolError: one of them is invalid
    """
    word = call.line.word(0)

    def wrong(text: str) -> None:
        call.syntax.wrong("argument PORT[/PROTOCOL]: " + text)

    parts = word.split("/")
    if word.lower() == "icmp":
        return "", "icmp"
    if len(parts) > 2:
        wrong(f"Invalid format for port/protocol, got {word!r}")
    numbers = []
    ends = parts[0].split("-")
    for text in ends if len(ends) == 2 and all(ends) else parts[:1]:
        try:
            # As in the original: what int() of Python 2 accepted, including spaces and a sign.
            numbers.append(int(text if text.isascii() and "_" not in text else ""))
        except ValueError:
            wrong(f"Invalid port, must be an integer, got {text!r}")
        if not 1 <= numbers[-1] <= 65535:
            wrong(f"Invalid port, must be from 1 to 65535, got {numbers[-1]}")
    if numbers[0] > numbers[-1]:
        wrong(f"Invalid port range, must be from the lower to the higher one, got {parts[0]!r}")
    protocol = parts[1].lower() if len(parts) == 2 else "tcp"
    if protocol not in ("tcp", "udp"):
        wrong(f"Invalid protocol, must be 'tcp' or 'udp', got {parts[1]!r}")
    return "-".join(str(number) for number in dict.fromkeys(numbers)), protocol


def opened_ports(call: ToolCall) -> Any:
    """Return the open ports."""
    return call.data("opened_ports")


def is_leader(call: ToolCall) -> Any:
    """Return whether this unit is the leader of its service."""
    return call.ask("is_leader").get("leader") == b"1"


def leader_get(call: ToolCall) -> Any:
    """Return the leader's settings, or one of them."""
    return call.data("leader_get", setting_name=call.name())


def leader_set(call: ToolCall) -> Any:
    """Set the leader's settings, which all units of this service can read."""
    call.ask("leader_set", **_assignments(call))
    return NOTHING


def _of_unit(call: ToolCall) -> None:
    if call.line.has("--application"):
        raise ToolError("only units have a status, whole services have none")


def status_set(call: ToolCall) -> Any:
    """Set the status of this unit."""
    _of_unit(call)
    call.ask("status_set", status=call.line.word(0), message=call.line.word(1))
    return NOTHING


def status_get(call: ToolCall) -> Any:
    """Return the status of this unit; in formats other than `smart`, with its message."""
    _of_unit(call)
    answer = call.data("status_get")
    if call.line.has("--include-data"):
        return answer
    if call.line.options.get("--format", "smart") == "smart":
        return answer["status"]
    return {key: answer[key] for key in ("message", "status")}


def application_version_set(call: ToolCall) -> Any:
    """Log the version of the program that the service runs."""
    call.ask("application_version_set", version=call.line.word(0))
    return NOTHING


def goal_state(call: ToolCall) -> Any:
    """Return the current and expected units and relations."""
    return call.data("goal_state")


def network_get(call: ToolCall) -> Any:
    """Return the addresses of this unit. They are the same for all its relations."""
    binding, options = call.line.word(0), call.line.options
    answer = call.data("network_get", binding=binding, relation_id=options.get("-r", ""))
    if not answer["ingress-addresses"]:
        raise ToolError(f"no network config found for binding {binding!r}")
    if "--egress-subnets" in options:
        return answer["egress-subnets"]
    if {"--primary-address", "--bind-address", "--ingress-address"} & set(options):
        return answer["ingress-addresses"][0]
    return answer


def storage_list(call: ToolCall) -> Any:
    """Return the storages of this unit."""
    return call.data("storage_list")


def storage_get(call: ToolCall) -> Any:
    """Return an attribute of a storage: always refused, since units have no storage."""
    return call.data("storage_get", storage_id=call.line.options.get("-s", ""), attribute=call.line.word(0))


def resource_get(call: ToolCall) -> Any:
    """Return the path of a resource: always refused, since services have no resources."""
    return call.data("resource_get", name=call.line.word(0))


def action(call: ToolCall) -> Any:
    """Refuse, because hooks are not actions."""
    raise ToolError("not running an action")


def action_set(call: ToolCall) -> Any:
    """Print that nothing is set. Don't fail, because charms call this in code that hooks and actions share."""
    tool_output.complain(f"{call.syntax.tool}: not running an action, nothing is set")
    return NOTHING
