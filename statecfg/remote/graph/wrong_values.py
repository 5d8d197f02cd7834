"""Wrong values of attributes: the exception, and how messages show a value and its type."""

from __future__ import annotations

from statecfg.remote.graph.errors import StatecfgError

MAX_SHOWN = 80  # characters of a value in a message
AS_STRING = "write it as a string"  # the help for a list or a map


class Wrong(StatecfgError, ValueError):
    """A value is not allowed.

    :param message: the reason
    :param help: what to write instead
    """

    def __init__(self, message: str, help: str = "") -> None:
        ValueError.__init__(self, message)
        self.help = help


class PublicSecret(Wrong):
    """A secret is in a program's arguments.

    :param help: where to put the secret instead
    :param attribute: the name of the attribute with the value; "" if the caller knows it
    """

    def __init__(self, help: str, attribute: str = "") -> None:
        super().__init__("contains a secret, which every user of the host can read", help)
        self.attribute = attribute


def show(value: object) -> str:
    """Return any value as text for a message, at most 80 characters."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return f"an integer of about {value.bit_length() * 30103 // 100000 + 1} digits"
    if isinstance(value, (str, bytes)) and len(value) > MAX_SHOWN:
        return repr(value[: MAX_SHOWN - 5])[: MAX_SHOWN - 2] + "…" + ("'" if isinstance(value, str) else "")
    if type(value).__name__ == "mappingproxy":
        value = dict(value)  # type: ignore[call-overload]  # the name says that it is a map
    elif type(value).__name__ in ("PVector", "pvector"):
        value = list(value)  # type: ignore[call-overload]  # the name says that it is a list
    try:
        text = repr(value)
    except Exception as error:  # a value's own repr may raise anything, and the message must still be written
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def in_quotes(value: object) -> str:
    """Return a help text for a value that must be a string."""
    if isinstance(value, bool):
        return f'put it in quotes: "{str(value).lower()}"'  # as YAML writes it
    return f'put it in quotes: "{show(value)}"' if isinstance(value, (int, float)) else AS_STRING


def type_words(value: object) -> str:
    """Return a description of a value's type, with an article."""
    if value is None:
        return "nothing"
    words = {
        "bool": "a boolean",
        "int": "an integer",
        "float": "a number",
        "str": "a string",
        "bytes": "bytes",
        "list": "a list",
        "tuple": "a list",
        "PVector": "a list",
        "pvector": "a list",
        "dict": "a map",
        "PMap": "a map",
        "Attributes": "a map",
        "mappingproxy": "a map",
        "set": "a set",
        "date": "a date",
        "datetime": "a date and time",
        "Keyword": "a keyword",
        "Output": "a value of a node",
        "function": "a function",
        "Graph": "a graph",
    }
    name = type(value).__name__
    return words.get(name, ("an " if name[:1] in "AEIOaeio" else "a ") + name)
