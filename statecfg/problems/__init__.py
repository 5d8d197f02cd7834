"""What is wrong with what the user wrote, as values: found here, placed there, all of it shown at once.

The exceptions of statecfg, with their rooms. The root is in `statecfg/remote/graph/errors.py`.

    StatecfgError
    ├── InvalidInput              problems        the user wrote something wrong; it holds all problems
    │   ├── StalePlan             problems        a saved plan does not fit what it was made from
    │   └── UnknownVariable       playbook        a play uses a variable that does not exist
    ├── CheckError                remote.graph    a node can't be applied on this host
    │   └── Conflict              remote.graph    nodes of one run exclude each other
    ├── Unknown                   remote.graph    a check needs what another node's action decides
    ├── Stays                     remote.graph    an orphan can't be undone in this run
    ├── Wrong                     remote.graph    a value is not allowed (also a ValueError)
    │   └── Mismatch              graph           a value does not have the type of its attribute
    ├── WriteAttempt              remote.machine  a check tried to change the host
    ├── UnsafePath                remote.machine  another user controls a link on the way (also an OSError)
    ├── ProtocolError             remote.wire     bytes that are no frame of ours
    ├── StateError                remote.ledger   the host can't keep its ledger
    ├── Malformed                 remote.hooks    a hook's output has an invalid shape
    ├── UnitError                 remote.units    a unit's command can't be answered, on the host
    ├── AmpError                  remote.units    bytes that are no AMP message
    ├── ToolError                 remote.units    a hook's tool failed
    │   └── AgentError            remote.units    the agent refused the tool's request
    ├── Lost                      problems        a text has a part of a secret's token (also a ValueError)
    ├── TypeProblem               graph           an annotation of a node type means nothing
    ├── Missing                   templates       a template uses an undefined name (also Jinja's UndefinedError)
    ├── Refused                   templates       a template does what templates may not do
    ├── TooMuch                   templates       a template exceeds a limit
    ├── _CantSend                 playbook        a node's attribute can't be sent
    ├── _Stop                     dialects        the rest of a YAML file can't be read
    ├── BadForm                   dialects        a Hy macro received an invalid form
    ├── TransportError            transport       a connection to a host failed
    │   ├── Unreachable           transport       no connection could be made
    │   ├── HostKeyRejected       transport       the host's key is unknown, changed or revoked
    │   ├── AuthenticationFailed  transport       the host refused every key
    │   ├── ConnectionLost        transport       the connection broke
    │   └── BecomeFailed          transport       sudo or su failed
    ├── ConfigProblem             transport       an ssh_config file is invalid (also a ValueError)
    ├── KeyLocked                 transport       a private key needs a passphrase
    ├── KeyUnusable               transport       a private key can't be used
    ├── TooMuch                   transport       an SSH server sent more than a limit
    ├── _TurnedAway               transport       an SSH server dropped the connection before its greeting
    ├── StoreError                store           the store can't be used
    │   ├── Busy                  store           another process holds the lock
    │   ├── Lost                  store           the connection to PostgreSQL broke
    │   ├── Again                 store           PostgreSQL asks to repeat the transaction
    │   └── Unmade                store           the database has no schema yet
    ├── UnitError                 store           a unit asked for what it can't have
    ├── Broken                    run             a host sent an invalid event, or nothing
    ├── Invalid                   run             JSON has another shape than its class (also a ValueError)
    ├── HookFailure               run             a hook's failure ended the run of a host
    ├── NotStarted                run             the user stopped the run before this host
    ├── OtherHost                 run             the host's key is not that of the plan
    ├── Unjoined                  run             a lookup that all hosts wait for failed
    ├── _TakeBack                 units           ends the transaction of a plan
    ├── HookError                 hooks           an HTTP hook reports its failure
    ├── AddressError              hooks           the address of an HTTP hook can't be resolved
    ├── Unreadable                hooks           an HTTP hook's answer is invalid
    ├── Unanswered                hooks           an HTTP hook did not answer
    ├── NotOurs                   hooks           an answer has the marker of another hook's secret
    ├── ApiError                  entities        an API request is refused
    ├── TemplateError             entities        a template of a behavior is invalid
    ├── TooSlow                   entities        a regular expression took too long
    ├── Unsupported               server          the client asks for an unknown API version
    └── Unwritten                 cli             the report can't be written

`playbook` also has TookTooLong and AskedForInput. They derive from BaseException, so that `except Exception` in the
code of users lets them pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from statecfg.problems import tokens
from statecfg.problems.positions import SourceLocation
from statecfg.problems.suggestions import suggest, suggest_file
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.suggestions import did_you_mean, nearest

__all__ = [
    "CODES",
    "InvalidInput",
    "Problem",
    "SourceLocation",
    "collecting",
    "did_you_mean",
    "going_on",
    "nearest",
    "problem",
    "report",
    "suggest",
    "suggest_file",
]

# code → (summary, what it means). Hundreds: 1 declarations and graphs, 2 values, 3 YAML and templates,
# 4 inventory and command line, 5 Python and Hy, 6 hooks, 7 services, 8 entities. `docs/errors.md` is made from it, and
# `docs/errors/` has an example of each.
CODES: dict[str, tuple[str, str]] = {
    "SC0101": ("unknown attribute", "A node was given an attribute that its type does not have."),
    "SC0102": ("missing attribute", "A required attribute or argument of a node was not given."),
    "SC0103": ("attribute given twice", "An attribute was given both by position and by name, or in two spellings."),
    "SC0104": ("too many arguments", "A node was given more positional arguments than its type accepts."),
    "SC0105": ("wrong requirement", "`requires` or `restart_on` contains something that is not a name, node or graph."),
    "SC0106": ("unknown node type", "Neither statecfg nor the project's resources/ has a node type with this name."),
    "SC0107": ("attributes contradict each other", "Each attribute is valid, but not this combination of attributes."),
    "SC0108": ("wrong name", "The name of a node is empty, too long or contains invalid characters."),
    "SC0109": ("not a graph", "`merge_graphs` received, or a play returned, something that is not a graph."),
    "SC0110": ("duplicate name", "Two different nodes have the same name."),
    "SC0111": ("missing requirement", "A node requires a name that no node of the graph has."),
    "SC0112": ("a node requires itself", "A node lists itself in its requirements."),
    "SC0113": ("circular requirements", "Nodes require each other in a cycle, so none of them can come first."),
    "SC0114": ("two nodes for the same thing", "Two nodes describe the same file, user, package or other real object."),
    "SC0115": ("graph too large", "The graph has more nodes or more layers than statecfg supports."),
    "SC0116": ("node can't be prepared", "Something that a node needs on the controller is missing or invalid."),
    "SC0117": ("value can't be sent", "An attribute of a node is not made of text, numbers, lists, maps or content."),
    "SC0118": (
        "file can't be read",
        "A playbook, or a file that a node names, is missing, unreadable, outside the project or of the wrong type.",
    ),
    "SC0119": ("wrong node type", "The definition of a node type contains an error."),
    "SC0120": ("node type defined twice", "The project's resources/ contains a node type whose name is already taken."),
    "SC0121": ("nodes contradict each other", "Two nodes describe states of the host that can't both be true."),
    "SC0201": ("wrong type of value", "The value of an attribute does not have the type that the node type expects."),
    "SC0202": ("wrong value", "The value of an attribute has the right type, but the node type does not allow it."),
    "SC0301": ("file can't be read", "A playbook, inventory or template is missing, unreadable or not a regular file."),
    "SC0302": ("file too large", "A YAML file is larger than 16 MB."),
    "SC0303": ("empty file", "A YAML file contains only white space and comments."),
    "SC0304": ("several documents", "A YAML file contains more than one document."),
    "SC0305": ("limit exceeded", "A YAML file is nested too deeply, or contains or expands to too many values."),
    "SC0306": ("duplicate key", "A YAML map contains the same key twice. Other parsers use the later one."),
    "SC0307": ("wrong alias", "An alias in a YAML file has no anchor above it, or is part of its own anchor's value."),
    "SC0308": ("wrong key", "A key of a YAML map is not a string, is the merge key `<<`, or can't name a variable."),
    "SC0309": ("ambiguous value", "Versions and parsers of YAML interpret this unquoted value differently."),
    "SC0310": ("wrong shape", "YAML has a map, a list or a single value where a different one of these is required."),
    "SC0311": ("unknown key", "A YAML map contains a key that has no meaning there."),
    "SC0312": ("tag refused", "A YAML file uses an unknown tag, or a known tag where it has no meaning."),
    "SC0313": ("not plain UTF-8", "A file has a byte order mark, another encoding, or characters that YAML forbids."),
    "SC0314": ("git conflict marker", "A file contains the conflict markers of an unfinished merge."),
    "SC0315": ("not YAML", "A file contains a YAML syntax error."),
    "SC0316": ("wrong entry", "An entry of `resources:` has no node type, several node types or an unknown key."),
    "SC0317": ("include loop", "A file includes itself, directly or through others."),
    "SC0318": ("wrong condition", "The expression of a `when:` evaluates to something other than true or false."),
    "SC0319": ("wrong loop", "The expression of a `for_each:` evaluates to something other than a list or a map."),
    "SC0320": ("template can't be parsed", "A template contains a Jinja syntax error."),
    "SC0321": ("undefined name", "A template uses a variable, attribute or key that does not exist."),
    "SC0322": ("template failed", "A template raised an error or did something that templates are not allowed to do."),
    "SC0323": (
        "template limit exceeded",
        "A template ran longer than 5 seconds, calls itself too deeply, or it or its output exceeds 16 MB.",
    ),
    "SC0401": ("wrong host name", "The name of a host or group, or an address, contains invalid characters."),
    "SC0402": ("circular groups", "Groups in the inventory contain each other in a cycle."),
    "SC0403": ("one name for a host and a group", "A pattern with that name could mean either."),
    "SC0404": ("unknown host or group", "The inventory, a pattern or a command names an unknown host or group."),
    "SC0405": ("wrong host setting", "A setting of a host in the inventory has an invalid value."),
    "SC0406": ("no host matches", "A pattern or a limit selects no hosts."),
    "SC0407": ("wrong pattern", "A host pattern contains an empty term or an invalid regular expression."),
    "SC0408": ("groups disagree", "Two groups of a host set a variable differently, and neither contains the other."),
    "SC0410": ("wrong settings file", "statecfg.toml can't be parsed, or one of its settings has an invalid value."),
    "SC0411": ("unknown setting", "The project's statecfg.toml contains a setting that does not exist."),
    "SC0412": (
        "anyone could change this file",
        "Every user can write this file or its directory, so statecfg does not trust it.",
    ),
    "SC0413": ("wrong store address", "The address of the store is neither a path nor a URL that statecfg supports."),
    "SC0420": ("secret not available", "The environment variable or file of a secret is missing or can't be used."),
    "SC0421": ("secret too short", "A secret has fewer than 4 characters, so statecfg can't mask it in output."),
    "SC0422": ("wrong secret", "The declaration of a secret is invalid."),
    "SC0423": (
        "placeholder of a secret damaged",
        "Something changed, cut or encoded the placeholder of a secret in a text, or replaced it by the secret's mask.",
    ),
    "SC0424": (
        "variable that nothing reads",
        "The command line sets a variable that neither the playbook nor the inventory declares or reads.",
    ),
    "SC0425": ("secret in a name", "A name, argument, path, tag or host contains a secret. Everyone can read these."),
    "SC0430": (
        "saved plan can't be used",
        "A saved plan is damaged, was edited, can't be read or written, or would contain a secret.",
    ),
    "SC0431": ("no resource has this tag", "No resource of the selected hosts has any of the requested tags."),
    "SC0432": (
        "saved plan is stale",
        "A saved plan was made from other inputs than those of this project, or by another version (exit code 6).",
    ),
    "SC0440": (
        "picture can't be drawn",
        "A PNG needs the Pillow library and a size that programs can show. An SVG needs neither.",
    ),
    "SC0450": (
        "can't start the server",
        "statecfg can't listen on an address, has no TLS for an address that other machines can reach, or can't use "
        "its certificate.",
    ),
    "SC0451": ("too few open files", "The process may not open as many files as this number of parallel hosts needs."),
    "SC0452": ("no usable key", "statecfg can't use any of the keys for a host, and no SSH agent is running."),
    "SC0501": (
        "can't be parsed",
        "A Hy or Python file contains a syntax error. For an unclosed bracket, the error shows where it opens.",
    ),
    "SC0502": ("wrong use of a macro", "A Hy macro received arguments that it can't use."),
    "SC0503": ("undefined name", "A Hy or Python file uses a name that is not defined."),
    "SC0504": (
        "exception in the definition",
        "A Hy or Python file raised an exception. The error shows the last line of your own code first.",
    ),
    "SC0505": ("not allowed in a definition", "A Hy or Python file exits the program or asks for input."),
    "SC0506": (
        "module or name can't be imported",
        "A Hy or Python file imports a module, name or macro that does not exist on this machine.",
    ),
    "SC0507": ("took too long", "A Hy or Python file ran longer than 60 seconds."),
    "SC0508": ("wrong arguments", "A Hy or Python file calls a function with arguments that it does not accept."),
    "SC0510": ("no play", "A playbook defines no play, so it does not apply to any host."),
    "SC0511": ("declared and not returned", "A play declares a node that is not in the graph that the play returns."),
    "SC0512": (
        "wrong play",
        "A play lacks its hosts, has an invalid or unknown option, or is not a function of the host.",
    ),
    "SC0513": ("two plays of one name", "Two plays of a playbook have the same name."),
    "SC0514": ("unknown variable", "A play uses a variable that is not set anywhere."),
    "SC0515": ("not a playbook", "The file name of a playbook does not end in .hy, .py, .yml or .yaml."),
    "SC0516": ("syntax too new for hosts", "A node type's file uses syntax that hosts with Python 3.8 don't support."),
    "SC0601": (
        "others could change this",
        "Other users can change a file or directory of a hook or charm, so statecfg does not use it.",
    ),
    "SC0602": ("missing part of a hook", "A hook's registration lacks a required part."),
    "SC0603": ("wrong value in a hook", "A hook's registration contains an invalid value."),
    "SC0604": ("unknown event", "A hook's registration or a command refers to an event that does not exist."),
    "SC0605": ("wrong duration", "A duration is not in ISO 8601 format, or its value is not allowed."),
    "SC0606": ("wrong hook address", "The address of an HTTP hook is missing, contradictory or unusable."),
    "SC0607": ("two hooks of one name", "The names of two hooks are the same, apart from upper and lower case."),
    "SC0608": ("unknown capability", "An HTTP hook is registered with an unknown capability, or with none."),
    "SC0609": ("wrong child from a hook", "statecfg can't build the host's graph from the children of an HTTP hook."),
    "SC0610": ("ambiguous child of a hook", "Several nodes match a child's name, or several names match one node."),
    "SC0620": ("unknown hook type", "The hook path has no directory with the name of this type and the suffix .hook."),
    "SC0621": ("wrong hook type", "The configuration.yaml of a hook type does not describe its keys correctly."),
    "SC0622": ("wrong hook configuration", "A hook's configuration does not match the keys of its type."),
    "SC0623": ("hook exists already", "A hook with this name already exists and has a different definition."),
    "SC0624": ("unknown hook", "There is no hook with this name."),
    "SC0625": ("wrong hook name", "The name of a hook is empty, too long or contains invalid characters."),
    "SC0650": ("no Full Control", "`--no-hooks` skips all hooks of a run. You need Full Control of each of them."),
    "SC0651": (
        "hook too large",
        "The files of a hook type that runs on hosts exceed 4 MiB. statecfg sends them to each host.",
    ),
    "SC0701": ("wrong service name", "The name of a service is too long, or units can't be named after it."),
    "SC0702": ("two services of one name", "Two services of a playbook have the same name."),
    "SC0703": ("wrong charm", "A charm's directory is missing, has no hooks, or contains a file that can't be used."),
    "SC0704": ("charm too large", "A charm contains more than 64 MiB or more than 10,000 files."),
    "SC0705": ("hook not executable", "The file of a hook is not executable."),
    "SC0706": ("hook that never runs", "No hook has the name of this file. It is probably a misspelled hook name."),
    "SC0707": ("wrong option", "An option in a service's schema has an invalid type, default or key."),
    "SC0708": ("unknown setting", "A command or playbook refers to a setting that is not in the service's schema."),
    "SC0709": (
        "wrong value of a setting",
        "A setting has no value, a value that its option does not accept, or the settings are too large in total.",
    ),
    "SC0710": (
        "secret in the wrong place",
        "A secret is in a place where it could be read, or a plain text is used as a secret.",
    ),
    "SC0711": (
        "wrong relation",
        "A relation must have two ends SERVICE:RELATION of different services, or one end for peers.",
    ),
    "SC0712": ("unknown service", "A relation refers to a service that the playbook does not have."),
    "SC0713": ("unknown end of a relation", "The metadata.yaml of a charm has no relation with this name."),
    "SC0714": (
        "ends of a relation don't match",
        "The ends of a relation have different interfaces, or roles that can't be combined.",
    ),
    "SC0715": ("relation declared twice", "A playbook declares the same relation twice."),
    "SC0716": ("wrong service", "A part of a service's declaration has the wrong type or does not belong there."),
    "SC0750": ("no such service", "The project has no service with this name: it was never applied, or was destroyed."),
    "SC0751": ("service of another playbook", "Another playbook of the project has a service with this name."),
    "SC0752": ("no such unit", "The service has no unit with this number: it was never created, or it was removed."),
    "SC0753": ("no such relation", "The project has no relation between these ends."),
    "SC0754": ("no host for a unit", "A new unit was requested without a host, and the service has no hosts."),
    "SC0801": (
        "refused",
        "A request about an entity, its type or a behavior is invalid, or not allowed in this state.",
    ),
    "SC0802": (
        "no such thing",
        "No type, entity, behavior or token has this name, several have it, or you lack the rights to it.",
    ),
    "SC0803": ("changed meanwhile", "Somebody else changed the entity after you read it."),
    "SC0804": ("wrong file of an entity", "A file or the standard input does not contain a mapping in JSON or YAML."),
    "SC0805": ("wrong behavior", "statecfg can't run the execution of a behavior."),
    "SC0806": ("host not allowed", "A playbook selects a host that the `hosts` of its behavior do not include."),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    :param code: ``SC`` and four digits, a key of `CODES`
    :param summary: short and fixed for the code
    :param detail: what is wrong here, and why
    :param help: what to do; "" where there is nothing to say
    :param places: where, the main one first
    """

    code: str
    summary: str
    detail: str
    help: str = ""
    places: tuple[SourceLocation, ...] = ()

    def __str__(self) -> str:
        text = f"error[{self.code}]: {self.summary}: {self.detail}"
        text += "".join(f"\n  --> {place}" for place in self.places)
        return text + (f"\n  help: {self.help}" if self.help else "")


class InvalidInput(StatecfgError):
    """What the user wrote is wrong; `problems` says all of it. Anything else that escapes is our own mistake."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: list[Problem] = list(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[list[Problem]]]:
        return InvalidInput, (self.problems,)


class StalePlan(InvalidInput):
    """A saved plan does not fit what is here: it was made from something else. Nothing was touched (exit 6)."""


class _Found(list[Problem]):
    """Problems in the order they were found, each once."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[Problem] = set()

    def add(self, item: Problem) -> None:
        if item not in self.known:
            self.known.add(item)
            self.append(item)


_FOUND: ContextVar[_Found | None] = ContextVar("found problems", default=None)


@contextlib.contextmanager
def collecting() -> Iterator[list[Problem]]:
    """Gather the problems reported inside, so that evaluation goes on and all are shown at once."""
    found = _Found()
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


class _GoingOn:
    def __enter__(self) -> None:
        pass

    # It returns a plain bool, which tells type checkers that what stands inside may be left in the middle.
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, InvalidInput):
            return False
        if _FOUND.get() is None:
            return False
        report(*error.problems)
        return True


def going_on() -> _GoingOn:
    """Report what is raised inside, so that what comes after is looked at as well, where problems are collected."""
    return _GoingOn()


def problem(code: str, detail: str, help: str = "", *places: SourceLocation) -> Problem:
    """Return a problem with the summary of its code. Raises KeyError for a code that is not in `CODES`."""
    return Problem(code, CODES[code][0], tokens.masked(detail), tokens.masked(help), tuple(dict.fromkeys(places)))


def report(*found: Problem) -> None:
    """Add problems to those being collected; raise InvalidInput where nobody is collecting."""
    if not found:
        return
    gathered = _FOUND.get()
    if gathered is None:
        raise InvalidInput(found)
    for item in found:
        gathered.add(item)


def clipped(name: str, most: int = 100) -> str:
    """Return a name as messages show it: at most `most` characters of it."""
    return name if len(name) <= most else f"{name[: most - 31]}…{name[-30:]}"
