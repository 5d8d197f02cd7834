"""Parse the command lines of the hooks' tools, and write their help texts.

Hooks start many tools, and importing `argparse` would take too long. Its rules apply: options anywhere among the words,
`--option=value`, `-ovalue`, unique prefixes of long options, `--` before words that look like options.
"""

from __future__ import annotations

from statecfg.remote.graph.errors import StatecfgError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, NoReturn, Optional, Sequence, Tuple

USAGE = 2  # exit status for an invalid command line
FAILED = 1  # exit status for a failed command
# Values after `--option=` for options without a value. Source: Go's flags, which today's tools use.
TRUTH = dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True)
TRUTH.update((text, False) for text in ("0", "f", "F", "false", "False", "FALSE"))


class ToolError(StatecfgError):
    """A command failed. The text is for the caller of the tool."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.status = status


class ToolOption:
    """An option.

    :param names: as users write them; the first one is its key in `ToolLine.options`
    :param value: name of its value in the help; "" if it takes no value
    :param help: one line
    :param label: its name in errors; "" for all its names, shortest first
    """

    def __init__(self, names: Sequence[str], value: str, help: str, label: str = "") -> None:
        self.names, self.value, self.help = names, value, help
        self.label = label or "/".join(sorted(names, key=len))


UNKNOWN = ToolOption((), "", "")  # looks like an option, but is unknown
COMMON = (
    ToolOption(("--help", "-h"), "", "show this help and exit"),
    ToolOption(("--output", "-o"), "FILE", "write the output to a file"),
    ToolOption(("--socket", "-s"), "PATH", "the agent's socket, instead of $JUJU_AGENT_SOCKET or $JUJU_SOCKET"),
    ToolOption(("--client-id", "--client_id"), "ID", "the id of the hook, instead of $JUJU_CLIENT_ID", "--client-id"),
    ToolOption(("--format",), "FORMAT", "the output format: smart, json or yaml"),
    ToolOption(("--log-file",), "FILE", "accepted for old programs; it has no effect"),
    ToolOption(("--log-level",), "LEVEL", "accepted for old programs; it has no effect"),
)


class ToolLine:
    """A parsed command line."""

    def __init__(self, tool: str, options: Dict[str, str], words: List[str]) -> None:
        self.tool, self.options, self.words = tool, options, words

    def word(self, number: int, default: str = "") -> str:
        """Return the word at a position, starting at 0, or `default`."""
        return self.words[number] if number < len(self.words) else default

    def has(self, name: str) -> bool:
        """Return whether an option is given."""
        return name in self.options


class Syntax:
    """The command line of a tool.

    :param tool: its name
    :param help: what the tool does, in one line
    :param words: names of its words in the help
    :param least: minimum number of words
    :param most: maximum number of words; None for any number
    :param options: its options in addition to COMMON; they override options of COMMON with the same name
    :param lenient: whether unknown options count as words
    """

    def __init__(
        self,
        tool: str,
        help: str,
        words: str,
        least: int = 0,
        most: Optional[int] = 0,
        options: Sequence[ToolOption] = (),
        lenient: bool = False,
    ) -> None:
        self.tool, self.help, self.words, self.least, self.most = tool, help, words, least, most
        self.options, self.lenient = (*options, *COMMON), lenient
        self.by_name: Dict[str, ToolOption] = {}
        for option in self.options:
            for name in option.names:
                self.by_name.setdefault(name, option)

    def usage(self) -> str:
        """Return the usage line."""
        return " ".join(f"usage: {self.tool} [OPTION]… {self.words}".split())

    def help_text(self) -> str:
        """Return the output of --help."""
        lines = [self.usage(), "", self.help, "", "options:"]
        for option in self.options:
            names = [name for name in option.names if self.by_name[name] is option]
            lines.append(f"  {(', '.join(names) + ' ' + option.value).rstrip():24} {option.help}")
        return "\n".join(lines) + "\n"

    def wrong(self, text: str) -> NoReturn:
        """Raise the ToolError for an invalid command line."""
        raise ToolError(f"{self.usage()}\n{self.tool}: error: {text}", USAGE)

    def parse(self, arguments: Sequence[str]) -> ToolLine:
        """Parse a command line.

        :raises ToolError: the command line is invalid
        """
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
            parsed = None if bare else self._option(argument)
            if parsed is None:
                (words if self.most is None or len(words) < self.most else extra).append(argument)
                continue
            option, value = parsed
            if option is UNKNOWN:
                extra.append(argument)
                continue
            name = option.names[0]
            if option.value and value is None:
                if not rest or rest[0] == "--" or self._option(rest[0]) is not None:
                    self.wrong(f"argument {option.label}: expected one argument")
                value = rest.pop(0)
            elif not option.value and value is not None:
                if value not in TRUTH:
                    self.wrong(f"argument {option.label}: ignored explicit argument {value!r}")
                if not TRUTH[value]:
                    options.pop(name, None)
                    continue
            options[name] = (value if option.value else None) or ""
        if "--help" not in options:
            if len(words) < self.least:
                self.wrong("too few arguments")
            if extra:
                self.wrong(f"unrecognized arguments: {' '.join(extra)}")
        return ToolLine(self.tool, options, words)

    def _option(self, argument: str) -> Optional[Tuple[ToolOption, Optional[str]]]:
        """Return the option of an argument, or UNKNOWN, and the value in the argument; None if it is a word."""
        if len(argument) < 2 or argument[0] != "-":
            return None
        if argument.startswith("--"):
            name, is_there, value = argument.partition("=")
            near = (
                [name]
                if name in self.by_name
                else [candidate for candidate in self.by_name if candidate.startswith(name)]
            )
            if len({id(self.by_name[candidate]) for candidate in near}) == 1:
                return self.by_name[near[0]], value if is_there else None
            if near and not self.lenient:
                self.wrong(f"ambiguous option: {name} could match {', '.join(sorted(near))}")
        elif argument[:2] in self.by_name:
            option = self.by_name[argument[:2]]
            if len(argument) == 2 or option.value:
                return option, argument[2:].lstrip("=") if len(argument) > 2 else None
        # As in argparse: negative numbers are words, and so are arguments with a space.
        is_word = self.lenient or " " in argument or _is_number(argument[1:])
        return None if is_word else (UNKNOWN, None)


def _is_number(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdigit() and not text.endswith(".")
