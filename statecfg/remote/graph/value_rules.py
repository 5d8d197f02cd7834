"""The rules for values of attributes. Each takes a value and returns it, possibly converted, or raises `Wrong`."""

from __future__ import annotations

import re
from typing import Any, Callable, List

from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.wrong_values import PublicSecret, Wrong, in_quotes, show, type_words

MAX_NAME = 255  # bytes in one component of a path: NAME_MAX of Linux
MAX_PATH = 4095  # bytes in a path: PATH_MAX of Linux without the final NUL
MAX_ID = 2**32 - 2  # the largest user or group id; for chown, the next number means "don't change"
SPECIAL = 0o7777
# Matches nearly all paths; only other paths need the separate rules.
_EVERYDAY_PATH = re.compile(r"(?:/(?!\.\.?(?:/|\Z))[A-Za-z0-9_@%+=:,.-]{1,255})+\Z")


def no_nul(value: str) -> str:
    """Return the text.

    :raises Wrong: if it contains a NUL, which no path, name or argument can contain
    """
    at = value.find("\0")
    if at >= 0:
        raise Wrong(f"a string with a NUL byte at index {at}", "remove the NUL")
    return value


def no_controls(value: str) -> str:
    """Return the text.

    :raises Wrong: if it contains a line break or another control character
    """
    for at, letter in enumerate(value):
        if letter < " " or "\x7f" <= letter < "\xa0" or letter in "\u2028\u2029":
            what = "line break" if letter in "\n\r\x85\u2028\u2029" else "control character"
            raise Wrong(f"a string with a {what} (U+{ord(letter):04X}) at index {at}", "remove it")
    return value


def encodable(value: str) -> str:
    """Return the text.

    :raises Wrong: if it can't be encoded as UTF-8
    """
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Wrong(f"not valid Unicode at index {error.start}", "pass bytes if it is binary") from None
    return value


def absolute_path(value: str) -> str:
    """Return the path.

    :raises Wrong: if it is not absolute, or not allowed for a managed path
    """
    if _EVERYDAY_PATH.match(value) and len(value) <= MAX_PATH:
        return value
    if not value:
        raise Wrong("an empty path", "write an absolute path, such as /etc/motd")
    no_controls(no_nul(encodable(value)))
    if value.startswith("~"):
        raise Wrong(
            "a path with `~`, which is not expanded",
            "write the whole path, such as /home/%s" % (value.lstrip("~/") or "deploy"),
        )
    if not value.startswith("/"):
        raise Wrong("a relative path", f"write an absolute path: /{value}")
    if len(value.encode("utf-8")) > MAX_PATH:
        raise Wrong(f"a path of {len(value.encode('utf-8'))} bytes; the maximum is {MAX_PATH}")
    parts = value.split("/")
    if ".." in parts:
        raise Wrong("a path with `..`", "write the resolved path")
    long = [part for part in parts if len(part.encode("utf-8")) > MAX_NAME]
    if long:
        size = len(long[0].encode("utf-8"))
        raise Wrong(f"a name of {size} bytes in the path; the maximum is {MAX_NAME}")
    if not value.strip("/."):
        raise Wrong("the root directory, which can't be managed", "name a file or directory below it")
    if value.endswith("/"):
        raise Wrong("a path that ends in `/`", f"write {show(value.rstrip('/'))}")
    return value


def working_directory(value: str) -> str:
    """Return the path of a working directory, which may be `/`.

    :raises Wrong: see `absolute_path`
    """
    return value if value == "/" else absolute_path(value)


def mode(value: Any) -> int:
    """Return permission bits from octal text such as "0644".

    :raises Wrong: for a number, a symbolic mode or other text
    """
    if isinstance(value, int) and not isinstance(value, bool):
        raise Wrong(f"a number, {_number_as_mode(value)}", _mode_help(value))
    if not isinstance(value, str):
        raise Wrong(f"{type_words(value)}", 'write octal digits in quotes: "0644"')
    if re.match(r"[-r][-w][-xsS]", value):
        raise Wrong("a mode as ls shows it", 'write octal digits in quotes: "0644"')
    if re.match(r"[ugoa]*[-+=][rwxXst]*(,|$)", value):
        raise Wrong(
            "a symbolic mode", 'write octal digits in quotes: "0644"; only file and directory take symbolic modes'
        )
    digits = value[2:] if value[:2] in ("0o", "0O") else value
    if not re.match(r"[0-7]{3,5}\Z", digits) or int(digits, 8) > SPECIAL:
        raise Wrong("not a mode", 'write three or four octal digits in quotes: "0644"')
    return int(digits, 8)


def mode_change(value: Any) -> int | str:
    """Return permission bits from octal text, or a symbolic mode such as "u=rw,go=r".

    :raises Wrong: for other values, and for a symbolic mode that would change the mode at every apply
    """
    if not isinstance(value, str) or not re.match(r"[ugoa]*[-+=]", value):
        return mode(value)
    from statecfg.remote.graph import symbolic_modes

    if not symbolic_modes.valid(value):
        letters = "`r`, `w`, `x`, `X`, `s` and `t`"
        raise Wrong("not a symbolic mode", f"write who, a sign and {letters}: u=rw,go=r or a+x")
    if not symbolic_modes.stable(value):
        raise Wrong("a symbolic mode that a second apply would change again", "write the mode that you want")
    return value


def _number_as_mode(value: int) -> str:
    return f"and decimal {value} is octal 0{value:o}" if 0 <= value < 1 << 20 else "and not a valid mode"


def _mode_help(value: int) -> str:
    if not 0 <= value <= SPECIAL:
        return 'write octal digits in quotes: "0644"'
    octal = f"{value:04o}"
    if not re.match(r"[0-7]{3,4}\Z", str(value)):
        return f"write '{octal}'; {value} decimal is 0{value:o}"
    return f"write '{value:04}'; {value} decimal is 0{value:o} (write '{octal}' if that was meant)"


def account_name(what: str) -> Callable[[str], str]:
    """Return a check of the name of a user or group. Source: Debian's adduser and useradd(8).

    :param what: "user" or "group"
    """

    def check(value: str) -> str:
        if not value:
            raise Wrong(f"an empty {what} name")
        no_nul(value)
        if len(value.encode("utf-8", "surrogatepass")) > 32:
            raise Wrong(f"a name of {len(value.encode('utf-8', 'replace'))} bytes; {what} names have at most 32")
        if value.isdigit():
            raise Wrong("a number", f"write the {what}'s name; a number would be read as an id")
        if not re.match(r"[A-Za-z_][A-Za-z0-9_.-]*\$?\Z", value):
            raise Wrong(f"not a valid {what} name", "use letters, digits, `_`, `-` and `.`; start with a letter or `_`")
        return value

    return check


def owner_name(what: str) -> Callable[[str], str]:
    """Return a check of an owner: a name, or an id written as text.

    :param what: "user" or "group"
    """
    named = account_name(what)

    def check(value: str) -> str:
        if value.isascii() and value.isdigit():
            if len(value) > 10 or int(value) > MAX_ID:
                raise Wrong(f"an id greater than {MAX_ID}")
            return value
        return named(value)

    return check


def within(low: float, high: float) -> Callable[[Any], Any]:
    """Return a check that a number is from `low` to `high`, both included."""

    def check(value: Any) -> Any:
        if not low <= value <= high:
            raise Wrong(f"{show(value)}; the allowed range is {low} to {high}")
        return value

    return check


def seconds(value: float) -> float:
    """Return a time in seconds as a float.

    :raises Wrong: if it is not above 0 and at most 1e9
    """
    if not 0 < value <= 1e9:
        raise Wrong(f"{show(value)} is not a time", "write a number of seconds above 0, such as 600")
    return float(value)


def pause(value: float) -> float:
    """Return a time to wait, in seconds, as a float.

    :raises Wrong: if it is negative or more than an hour
    """
    if not 0 <= value <= 3600:
        raise Wrong(f"{show(value)} is not a time to wait", "write a number of seconds from 0 to 3600")
    return float(value)


def argv(value: List[Any]) -> List[str]:
    """Return a program and its arguments.

    :raises Wrong: if the list is empty or an element can't be an argument
    """
    if not value or not value[0]:
        raise Wrong("no program", 'write the program and its arguments: ["systemctl", "reload", "nginx"]')
    for item in value:
        if not isinstance(item, str):  # a secret, the only other type that counts as text
            raise PublicSecret("put it into a file")
        no_nul(encodable(item))
    return value


def plain_name(value: str) -> str:
    """Return a name.

    :raises Wrong: if it is empty or too long, or contains spaces or control characters
    """
    if not value:
        raise Wrong("an empty name")
    no_nul(encodable(value))
    if len(value.encode("utf-8")) > MAX_NAME:
        raise Wrong(f"a name of {len(value.encode('utf-8'))} bytes; at most {MAX_NAME} are allowed")
    for letter in value:
        if letter.isspace() or not letter.isprintable():
            raise Wrong(f"a name with a space or control character (U+{ord(letter):04X})")
    return value


def one_line(value: str) -> str:
    """Return a string.

    :raises Wrong: if it contains a line break or NUL
    """
    no_nul(encodable(value))
    if "\n" in value or "\r" in value:
        raise Wrong("contains a line break; write one line")
    return value


def marker(value: str) -> str:
    """Return the text of the marker lines of a block.

    :raises Wrong: if it is not one line, or lacks `{mark}`
    """
    if "{mark}" not in value:
        raise Wrong("a marker without {mark}", "write {mark} where BEGIN and END belong, such as `# {mark} {name}`")
    return one_line(value)


def local_path(value: str) -> str:
    """Return the path of a file on the controller.

    :raises Wrong: if it is empty or too long, begins with `~`, or contains a NUL or a control character
    """
    if not value.strip():
        raise Wrong("an empty path", "name a file beside the playbook or in the project's files/ or templates/")
    no_controls(no_nul(encodable(value)))
    if value.startswith("~"):
        raise Wrong(
            "a path with `~`, which is not expanded", "write a path relative to the playbook, or an absolute one"
        )
    if len(value.encode("utf-8")) > MAX_PATH or max(len(part.encode("utf-8")) for part in value.split("/")) > MAX_NAME:
        raise Wrong(f"a path longer than the system allows ({MAX_PATH} bytes, each name {MAX_NAME})")
    return value


def suffix(value: str) -> str:
    """Return a suffix for a file's name.

    :raises Wrong: if it is empty or too long, or contains `/` or NUL
    """
    if not value or "/" in value:
        raise Wrong("not a suffix", "write the end of the file name, such as .bak")
    no_nul(encodable(value))
    if len(value.encode("utf-8")) > 64:
        raise Wrong(f"a suffix of {len(value.encode('utf-8'))} bytes; at most 64 are allowed")
    return value


def package_name(value: str) -> str:
    """Return the name of a package. Source: Debian Policy 5.6.1 and 5.6.7; rpm and pacman allow more letters.

    :raises Wrong: for other text
    """
    no_nul(value)
    if not re.match(r"[A-Za-z0-9_][A-Za-z0-9_+.-]*(:[a-z0-9][a-z0-9_-]*)?\Z", value):
        versioned = re.match(r"([A-Za-z0-9_][A-Za-z0-9_+.-]*)=(.+)\Z", value)
        if versioned:
            raise Wrong("a name with a version", f'write the version apart: version: "{versioned.group(2)}"')
        raise Wrong("not a valid package name", "such as nginx or libc6:i386")
    if len(value) > MAX_NAME:
        raise Wrong(f"a name of {len(value)} bytes; at most {MAX_NAME} are allowed")
    return value


def content(value: Any) -> Any:
    """Return the content of a file: text, bytes or a blob.

    :raises Wrong: for anything else
    """
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, (bytes, Blob)):
        return value
    raise Wrong(f"{type_words(value)}, not a string or bytes", in_quotes(value))


def pattern(value: str) -> str:
    """Return a regular expression.

    :raises Wrong: if it is invalid or contains a line break
    """
    try:
        re.compile(value)
    except re.error as error:
        raise Wrong(
            f"not a valid regular expression: {error}", "put a backslash before characters that are meant literally"
        ) from None
    return one_line(value)
