"""The texts of drop-in files: cron jobs, sudo rules, limits, logrotate and units. Only the controller uses this module.

`to_wire` of a node type sends what these functions return instead of the attributes that the user wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.suggestions import did_you_mean
from statecfg.remote.graph.wrong_values import PublicSecret, Wrong, show
from statecfg.resources.shared import line_rules, records

HEADER = "# Managed by statecfg.\n"
_NICKNAMES = ("@reboot", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Name, lowest and highest number, and the words for numbers from the lowest one on. Source: crontab(5).
_FIELDS: tuple[tuple[str, int, int, Sequence[str]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
# Source: limits.conf(5).
LIMITS = (
    "core", "data", "fsize", "memlock", "nofile", "rss", "stack", "cpu", "nproc", "as", "maxlogins", "maxsyslogins",
    "nonewprivs", "priority", "locks", "sigpending", "msgqueue", "nice", "rtprio",
)  # fmt: skip
# Source: logrotate(8) of version 3.22. Each section of a script has its own attribute.
DIRECTIVES = (
    "rotate", "start", "hourly", "daily", "weekly", "monthly", "yearly", "size", "minsize", "maxsize", "minage",
    "maxage", "missingok", "nomissingok", "ignoreduplicates", "ifempty", "notifempty", "olddir", "noolddir",
    "createolddir", "nocreateolddir", "su", "create", "nocreate", "copy", "nocopy", "copytruncate",
    "nocopytruncate", "renamecopy", "norenamecopy", "shred", "noshred", "shredcycles", "allowhardlink",
    "noallowhardlink", "compress", "nocompress", "compresscmd", "uncompresscmd", "compressext", "compressoptions",
    "delaycompress", "nodelaycompress", "extension", "addextension", "dateext", "nodateext", "dateformat",
    "dateyesterday", "datehourago", "mail", "nomail", "mailfirst", "maillast", "sharedscripts", "nosharedscripts",
    "tabooext", "taboopat", "include",
)  # fmt: skip
STARTERS = ("timer", "socket", "path")  # suffixes of units that start another unit
SCRIPTS = ("postrotate", "prerotate", "firstaction", "lastaction", "preremove")


def sent(node: Any, path: str, content: object, mode: int = 0o644, **attrs: Any) -> Any:
    """Return the node as the host needs it: with the path, the content, and root as its owner.

    :param attrs: other attributes to set; None removes one
    """
    if node.attrs.get("absent"):
        return node.with_attrs(path=path)
    return node.with_attrs(path=path, content=content, mode=mode, owner="root", group="root", **attrs)


def sent_to_home(node: Any, path: str, content: object, **attrs: Any) -> Any:
    """Return the node as the host needs it, if its file is in the home directory of its user.

    :param path: the path in the home directory, which only the host knows
    :param attrs: other attributes to set; None removes one
    """
    if node.attrs.get("absent"):
        return node.with_attrs(home_path=path)
    return node.with_attrs(home_path=path, content=content, mode=0o644, **attrs)


def check_name(name: str) -> None:
    """Check the name of a file that programs such as cron and sudo ignore if it contains other characters.

    :raises Wrong: if the name contains other characters
    """
    if not re.match(r"[A-Za-z0-9_-]+\Z", name):
        raise Wrong(f"not a valid name of a file in such a directory: {show(name)}", "use letters, digits, `_` and `-`")


def check_content(attrs: records.Attrs, contents: Sequence[str]) -> None:
    """Check that a file has one content, or none if it must be absent.

    :param contents: the attributes that give it a content; `vars` are those of `template`
    :raises ValueError: if they contradict each other
    """
    given = [name for name in contents if attrs.get(name) is not None]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)}: only one of them is allowed")
    if not given and not attrs.get("absent"):
        raise ValueError(f"one of {', '.join(contents)} is required unless absent is true")
    if attrs.get("vars") and attrs.get("template") is None:
        raise ValueError("vars requires template")


def check_present(attrs: records.Attrs, required: Iterable[str]) -> None:
    """Check that a node has the attributes that it needs, or only `absent`.

    :raises ValueError: if not
    """
    for name in required:
        if not attrs.get("absent") and attrs.get(name) is None:
            raise ValueError(f"{name} is required unless absent is true")


def check_schedule(text: str) -> None:
    """Check the times of a cron job. Source: crontab(5).

    :raises Wrong: if a field is not valid
    """
    if text.startswith("@"):
        if text not in _NICKNAMES:
            help = did_you_mean(text, _NICKNAMES) or f"use one of {', '.join(_NICKNAMES)}, or five fields"
            raise Wrong(f"cron has no schedule {show(text)}", help)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        help = 'write minute, hour, day of the month, month and day of the week, such as "30 4 * * *"'
        raise Wrong(f"a schedule with {len(fields)} fields instead of 5: {show(text)}", help)
    for field, (what, low, high, words) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            _check_part(part, what, low, high, words)


def _check_part(part: str, what: str, low: int, high: int, words: Sequence[str]) -> None:
    """Check one element of a field: `*` or a range, both with an optional step, or a single value."""
    span, slash, step = part.partition("/")
    start, dash, end = span.partition("-")
    numbers = [_number(text, low, words) for text in ([start, end] if dash else [start])]
    valid = span == "*" or (all(low <= number <= high for number in numbers) and numbers == sorted(numbers))
    # A step of a single value has no meaning in Debian's cron.
    if not valid or (slash and (not re.match(r"[1-9][0-9]*\Z", step) or not (dash or span == "*"))):
        raise Wrong(
            f"not a valid {what}: {show(part)}", f"use *, a number from {low} to {high}, or a range such as 1-5/2"
        )


def _number(text: str, low: int, words: Sequence[str]) -> int:
    """Return the number that a string represents; -1 if it is neither a number nor one of the words."""
    if text.lower() in words:
        return low + words.index(text.lower())
    return int(text) if text.isascii() and text.isdigit() else -1


def check_cron(attrs: records.Attrs) -> None:
    """Check schedule, command and environment of a cron job.

    :raises Wrong: if the schedule or the name of a variable is not valid, or the command contains a secret
    """
    if attrs.get("absent"):
        return
    check_schedule(str(attrs["schedule"]))
    if hasattr(attrs["command"], "reveal"):
        raise PublicSecret('put it into `environment`, and write "$NAME"', "command")
    for name, value in (attrs.get("environment") or {}).items():
        if not re.match(r"[A-Za-z_][A-Za-z0-9_]*\Z", name):
            raise Wrong(f"environment: {show(name)} is not the name of a variable", "use letters, digits and `_`")
        if not hasattr(value, "reveal") and "'" in value and '"' in value:
            raise Wrong(
                f"environment: {name} contains both kinds of quotes", "cron can't read this; set it in a script"
            )


def cron(attrs: records.Attrs) -> str:
    """Return the content of a file in /etc/cron.d. cron reads an unescaped `%` in a command as a line break."""
    lines = [f"{name}={_quoted(value)}\n" for name, value in sorted((attrs.get("environment") or {}).items())]
    command = re.sub(r"(?<!\\)%", r"\\%", attrs["command"])
    return f"{HEADER}{''.join(lines)}{attrs['schedule']} {attrs['user']} {command}\n"


def _quoted(value: str) -> str:
    """Return the value of a variable in quotes if cron would otherwise remove blanks or quotes from it."""
    if value and value == value.strip() and value[0] not in "\"'":
        return value
    return f"'{value}'" if '"' in value else f'"{value}"'


def sudoers(attrs: records.Attrs) -> str:
    """Return the content of a file in /etc/sudoers.d."""
    if attrs.get("content") is not None:
        text = str(attrs["content"])
        return text if text.endswith("\n") else text + "\n"
    tag = "" if attrs.get("password", True) else "NOPASSWD: "
    who, commands = ", ".join(attrs["users"]), ", ".join(attrs["commands"])
    return f"{HEADER}{who} ALL=({attrs['run_as']}) {tag}{commands}\n"


def limits(attrs: records.Attrs) -> str:
    """Return the content of a file in /etc/security/limits.d."""
    rows = [
        f"{attrs['domain']} {limit_type} {item} {value}\n"
        for limit_type in ("soft", "hard")
        for item, value in sorted((attrs.get(limit_type) or {}).items())
    ]
    return HEADER + "".join(rows)


def check_limits(attrs: records.Attrs) -> None:
    """Check the limits of a domain.

    :raises Wrong: for an unknown item, or a value that is not a number
    :raises ValueError: if there is no limit
    """
    if not attrs.get("soft") and not attrs.get("hard"):
        raise ValueError("soft or hard is required unless absent is true")
    for limit_type in ("soft", "hard"):
        for item, value in (attrs.get(limit_type) or {}).items():
            if item not in LIMITS:
                raise Wrong(
                    f"{limit_type}: {show(item)} is not a limit", did_you_mean(item, LIMITS) or "see limits.conf(5)"
                )
            if not re.match(r"(-?[0-9]+|unlimited|infinity)\Z", str(value)):
                raise Wrong(f"{limit_type}: {item} is {show(value)}", "write a number, or unlimited")


def logrotate(attrs: records.Attrs) -> str:
    """Return the content of a file in /etc/logrotate.d."""
    rows = [f"    {directive}\n" for directive in attrs.get("directives") or ()]
    for name, script in sorted((attrs.get("scripts") or {}).items()):
        body = "".join(f"        {line}\n" if line else "\n" for line in script.splitlines())
        rows.append(f"    {name}\n{body}    endscript\n")
    paths = " ".join(f'"{path}"' if re.search(r"[\s']", path) else path for path in attrs["paths"])
    return f"{HEADER}{paths} {{\n{''.join(rows)}}}\n"


def check_logrotate(attrs: records.Attrs) -> None:
    """Check the paths, directives and scripts of a rotation.

    :raises Wrong: for a relative path, or an unknown directive or script
    :raises ValueError: if there are no paths
    """
    if not attrs["paths"]:
        raise ValueError("paths is empty; name at least one log file")
    for path in attrs["paths"]:
        if not path.startswith("/") or re.search(r"[\"{}\n]", path):
            raise Wrong(
                f"paths: {show(path)} is not an absolute path of log files",
                "write a path or a pattern, such as /var/log/shop/*.log",
            )
    for directive in attrs.get("directives") or ():
        word = directive.partition(" ")[0]
        if word in SCRIPTS:
            raise Wrong(f"directives: {word} starts a script", f"write the script in `scripts`: {{{word}: …}}")
        if re.search(r"[{}]", directive):
            raise Wrong(f"directives: {show(directive)} contains a brace", "write one directive each")
        if word not in DIRECTIVES:
            raise Wrong(f"directives: logrotate has no directive {show(word)}", did_you_mean(word, DIRECTIVES))
    for name, script in (attrs.get("scripts") or {}).items():
        if name not in SCRIPTS:
            raise Wrong(
                f"scripts: logrotate has no script {show(name)}",
                did_you_mean(name, SCRIPTS) or f"use {', '.join(SCRIPTS)}",
            )
        if _secret(script):
            raise PublicSecret("let the script read it from a file of mode 0600", "scripts")
        if re.search(r"^\s*endscript\s*$", script, re.M):
            raise Wrong(f"scripts: {name} contains a line with endscript", "remove it: statecfg writes this line")


def unit(sections: Mapping[str, Any]) -> str:
    """Return the text of a unit file from its sections. A list becomes one line per value."""
    parts = []
    for section, settings in sections.items():
        rows = [f"{key}={_setting(value)}\n" for key, values in settings.items() for value in _several(values)]
        parts.append(f"[{section}]\n{''.join(rows)}")
    return HEADER + "\n".join(parts)


def check_unit_name(name: str) -> None:
    """Check the full name of a unit. Source: systemd.unit(5).

    :raises Wrong: if systemd does not allow it
    """
    if not re.match(r"[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\-]*)?\.[a-z]+\Z", name) or len(name) > 255:
        help = "use letters, digits, `:`, `_`, `.`, `-` and one `@`"
        if "/" in name:  # such as a mount point
            help += "; systemd-escape prints the name of the unit for a path"
        raise Wrong(f"not a valid name of a unit: {show(name)}", help)


def needed(name: str, attrs: records.Attrs) -> Iterable[str]:
    """Yield what the file of a unit needs: users, groups, programs and directories in its sections, and other units.

    :param name: the full name of the unit, with its user
    """
    user, _, _ = name.rpartition("/")
    if user and user != "*":
        yield "user:" + user
    sections = attrs.get("sections") or {}
    for settings in sections.values():
        for key, values in settings.items():
            for value in map(str, _several(values)):
                if key in ("User", "Group", "SupplementaryGroups"):
                    yield from (("user:" if key == "User" else "group:") + word for word in value.split())
                elif key == "WorkingDirectory" or key.startswith("Exec"):
                    path = value.lstrip("@-:+!|").partition(" ")[0]
                    yield ("path:" if key == "WorkingDirectory" else "program:") + path
    stem, _, suffix = name.rpartition(".")
    if attrs.get("drop_in"):
        yield "unit_file:" + name
    elif suffix in STARTERS:
        started = (sections.get(suffix.capitalize()) or {}).get("Service" if suffix == "socket" else "Unit")
        other = f"{user}/{started}" if user and started else started
        yield f"unit_file:{other or stem + '.service'}"


def can_be_enabled(content: Any) -> bool:
    """Return whether a unit's text has an Install section."""
    return content is not None and re.search(rb"^\[Install\]", Blob.of(content).read(), re.M) is not None


def _secret(values: Any) -> bool:
    """Return whether a value, or one in a list, is a secret."""
    return hasattr(values, "reveal") or (not isinstance(values, (str, int, float)) and any(map(_secret, values)))


def _several(value: Any) -> Sequence[Any]:
    return [value] if isinstance(value, (str, int, float)) else list(value)


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_sections(sections: Mapping[str, Any]) -> None:
    """Check the sections of a unit file.

    :raises Wrong: if a section is not a map, or a value is not one line of text, a number, or a list of these
    """
    for section, settings in sections.items():
        if not re.match(r"[A-Za-z0-9][A-Za-z0-9 ._-]*\Z", section):
            raise Wrong(f"sections: {show(section)} is not the name of a section", "such as Unit, Service or Install")
        if not isinstance(settings, Mapping):
            raise Wrong(f"sections: {section} is not a map", f"write {section}: {{Key: value}}")
        for key, values in settings.items():
            if not re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z", key):
                raise Wrong(
                    f"sections: {section}: {show(key)} is not the name of a setting", "see systemd.directives(7)"
                )
            if isinstance(values, Mapping) or values is None:
                raise Wrong(f"sections: {section}: {key} is not a string", "write text, a number, or a list of them")
            if _secret(values):
                raise PublicSecret("put it into a `file` of mode 0600, and name that in EnvironmentFile", "sections")
            for value in _several(values):
                if not isinstance(value, (str, int, float)):
                    raise Wrong(
                        f"sections: {section}: {key} is not a string", "write text, a number, or a list of them"
                    )
                line_rules.check_line(f"sections: {section}: {key}", str(value))
