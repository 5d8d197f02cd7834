"""The command lines of the hooks' tools: which options and words each takes, and what its help says.

Programs that hooks start by the dozen can't afford the start of `argparse`; its rules are kept: options anywhere among
the words, `--option=value`, `-ovalue`, unique beginnings of long options, `--` before words that look like options.
"""

from __future__ import annotations

from statecfg.remote.graph.errors import StatecfgError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, NoReturn, Optional, Sequence, Tuple

USAGE = 2  # exit status of a command line that is wrong
FAILED = 1  # exit status of a command that can't be done
# What may follow `--option=` of an option that takes no value. Source: Go's flags, in which today's tools are written.
TRUTH = dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True)
TRUTH.update((text, False) for text in ("0", "f", "F", "false", "False", "FALSE"))


class ToolError(StatecfgError):
    """A command can't be done; its text is for who called the tool."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.status = status


class Option:
    """An option.

    :param names: as they are written, the first one names it in `Line.options`
    :param value: what its value is called in the help; "" where it takes none
    :param help: a line
    :param label: what it is called where it is given in a wrong way; its names, the shortest first, where this is ""
    """

    def __init__(self, names: Sequence[str], value: str, help: str, label: str = "") -> None:
        self.names, self.value, self.help = names, value, help
        self.label = label or "/".join(sorted(names, key=len))


UNKNOWN = Option((), "", "")  # what looks like an option and is none
COMMON = (
    Option(("--help", "-h"), "", "show this and end"),
    Option(("--output", "-o"), "FILE", "write what is asked for to a file"),
    Option(("--socket", "-s"), "PATH", "the agent's socket, instead of $JUJU_AGENT_SOCKET or $JUJU_SOCKET"),
    Option(("--client-id", "--client_id"), "ID", "the hook on whose behalf, instead of $JUJU_CLIENT_ID", "--client-id"),
    Option(("--format",), "FORMAT", "how to write what is asked for: smart, json, yaml"),
    Option(("--log-file",), "FILE", "taken for the sake of old programs; nothing is logged there"),
    Option(("--log-level",), "LEVEL", "taken for the sake of old programs"),
)


class Line:
    """A command line, taken apart."""

    def __init__(self, tool: str, options: Dict[str, str], words: List[str]) -> None:
        self.tool, self.options, self.words = tool, options, words

    def word(self, number: int, default: str = "") -> str:
        """Return a word, the first one being number 0."""
        return self.words[number] if number < len(self.words) else default

    def has(self, name: str) -> bool:
        """Tell whether an option is given."""
        return name in self.options


class Syntax:
    """What a tool takes.

    :param tool: its name
    :param help: what it does, a line
    :param words: what its words are called in the help
    :param least: how many words it needs
    :param most: how many it takes, None where any number
    :param options: what it takes beside COMMON; these come first where one of COMMON has the same name
    :param lenient: words that look like options and are none are words
    """

    def __init__(
        self,
        tool: str,
        help: str,
        words: str,
        least: int = 0,
        most: Optional[int] = 0,
        options: Sequence[Option] = (),
        lenient: bool = False,
    ) -> None:
        self.tool, self.help, self.words, self.least, self.most = tool, help, words, least, most
        self.options, self.lenient = (*options, *COMMON), lenient
        self.known: Dict[str, Option] = {}
        for option in self.options:
            for name in option.names:
                self.known.setdefault(name, option)

    def usage(self) -> str:
        """Return the line that says how it is called."""
        return " ".join(("usage: %s [OPTION]… %s" % (self.tool, self.words)).split())

    def help_text(self) -> str:
        """Return what --help shows."""
        lines = [self.usage(), "", self.help, "", "options:"]
        for option in self.options:
            names = [name for name in option.names if self.known[name] is option]
            lines.append("  %-24s %s" % ((", ".join(names) + " " + option.value).rstrip(), option.help))
        return "\n".join(lines) + "\n"

    def wrong(self, text: str) -> NoReturn:
        """Refuse a command line."""
        raise ToolError("%s\n%s: error: %s" % (self.usage(), self.tool, text), USAGE)

    def parse(self, arguments: Sequence[str]) -> Line:
        """Take a command line apart. Raises ToolError where it is wrong."""
        options: Dict[str, str] = {}
        words: List[str] = []
        extra: List[str] = []
        rest = list(arguments)
        bare = False  # everything from here on is a word
        while rest:
            argument = rest.pop(0)
            if argument == "--" and not bare:
                bare = True
                continue
            found = None if bare else self._option(argument)
            if found is None:
                (words if self.most is None or len(words) < self.most else extra).append(argument)
                continue
            option, value = found
            if option is UNKNOWN:
                extra.append(argument)
                continue
            name = option.names[0]
            if option.value and value is None:
                if not rest or rest[0] == "--" or self._option(rest[0]) is not None:
                    self.wrong("argument %s: expected one argument" % option.label)
                value = rest.pop(0)
            elif not option.value and value is not None:
                if value not in TRUTH:
                    self.wrong("argument %s: ignored explicit argument %r" % (option.label, value))
                if not TRUTH[value]:
                    options.pop(name, None)
                    continue
            options[name] = (value if option.value else None) or ""
        if "--help" not in options:
            if len(words) < self.least:
                self.wrong("too few arguments")
            if extra:
                self.wrong("unrecognized arguments: %s" % " ".join(extra))
        return Line(self.tool, options, words)

    def _option(self, argument: str) -> Optional[Tuple[Option, Optional[str]]]:
        """Return which option an argument is, or UNKNOWN, and the value that stands in it; None where it is a word."""
        if len(argument) < 2 or argument[0] != "-":
            return None
        if argument.startswith("--"):
            name, is_there, value = argument.partition("=")
            near = [name] if name in self.known else [known for known in self.known if known.startswith(name)]
            if len({id(self.known[known]) for known in near}) == 1:
                return self.known[near[0]], value if is_there else None
            if near and not self.lenient:
                self.wrong("ambiguous option: %s could match %s" % (name, ", ".join(sorted(near))))
        elif argument[:2] in self.known:
            option = self.known[argument[:2]]
            if len(argument) == 2 or option.value:
                return option, argument[2:].lstrip("=") if len(argument) > 2 else None
        # As argparse: negative numbers are words, and what has a space was meant to be one.
        is_word = self.lenient or " " in argument or _is_number(argument[1:])
        return None if is_word else (UNKNOWN, None)


def _is_number(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdigit() and not text.endswith(".")
