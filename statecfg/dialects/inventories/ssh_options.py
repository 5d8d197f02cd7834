"""Read the route to a host from `ansible_ssh_common_args` and similar variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from statecfg.problems import suggest
from statecfg.remote.graph.errors import StatecfgError

# ssh's options that don't change the host, the user or the route. statecfg has its own connections,
# checks and limits; it always checks host keys.
WITHOUT_EFFECT = frozenset(
    [
        "addkeystoagent",
        "addressfamily",
        "batchmode",
        "canonicalizehostname",
        "checkhostip",
        "ciphers",
        "compression",
        "connectionattempts",
        "connecttimeout",
        "controlmaster",
        "controlpath",
        "controlpersist",
        "escapechar",
        "exitonforwardfailure",
        "forwardagent",
        "forwardx11",
        "globalknownhostsfile",
        "gssapiauthentication",
        "gssapidelegatecredentials",
        "hashknownhosts",
        "hostkeyalgorithms",
        "identitiesonly",
        "ipqos",
        "kbdinteractiveauthentication",
        "kexalgorithms",
        "loglevel",
        "macs",
        "numberofpasswordprompts",
        "passwordauthentication",
        "preferredauthentications",
        "pubkeyacceptedalgorithms",
        "pubkeyacceptedkeytypes",
        "pubkeyauthentication",
        "requesttty",
        "sendenv",
        "serveralivecountmax",
        "serveraliveinterval",
        "setenv",
        "stricthostkeychecking",
        "tcpkeepalive",
        "updatehostkeys",
        "userknownhostsfile",
        "verifyhostkeydns",
        "visualhostkey",
    ]
)
KNOWN = ("ProxyJump", "ProxyCommand", "IdentityFile", "Port", "User")
_WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"
_NO_EFFECT = "bceEm"
_ELSEWHERE = "put the option into ~/.ssh/config, which statecfg reads"


class WrongOption(StatecfgError):
    """An option can't be used. The first argument says why, the second what to do."""


@dataclass
class SshRoute:
    """The route to a host; None or empty for options that are not in the arguments.

    :param jump: jump hosts, in the format of ssh's `-J`; "none" for a direct connection
    """

    jump: str | None = None
    keys: list[str] = field(default_factory=list)
    user: str | None = None
    port: str | None = None
    others: list[str] = field(default_factory=list)


def read(text: str) -> SshRoute:
    """Return the route in the arguments of an ssh command.

    :raises WrongOption: an option can't be read, or statecfg can't do what it asks for
    """
    way = SshRoute()
    for flag, value in _flags(_split(text)):
        if not flag:
            raise WrongOption(f"`{value}` is not an option of ssh", _ELSEWHERE)
        _apply(way, flag, value)
    return way


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise WrongOption(f"the arguments can't be split: {error}", "close the quotes") from None


def _flags(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each flag with its value; `-o Key=Value` as ("key", "Value"), and other words as ("", word)."""
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-") or word == "-":
            yield "", word
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter not in _WITH_VALUE:
                yield letter, ""
                continue
            value, letters = letters or next(waiting, ""), ""
            if letter == "o":
                name, _, setting = re.sub(r"[\s=]+", "=", value.strip(), count=1).partition("=")
                yield name.lower(), setting.strip().strip('"')
            else:
                yield letter, value


def _apply(way: SshRoute, flag: str, value: str) -> None:
    if flag in ("J", "proxyjump"):
        way.jump = value
    elif flag == "proxycommand":
        way.jump = jump_of(value)
    elif flag in ("i", "identityfile"):
        way.keys.append(value)
    elif flag in ("l", "user"):
        way.user = value
    elif flag in ("p", "port"):
        way.port = value
    elif len(flag) == 1 and (flag in _NO_EFFECT or flag not in _WITH_VALUE):
        pass
    elif len(flag) > 1 and flag in WITHOUT_EFFECT:
        way.others.append(flag)
    elif flag == "F":
        raise WrongOption("-F names another configuration of ssh", "pass it to statecfg: --ssh-config FILE")
    else:
        name = f"-{flag}" if len(flag) == 1 else flag
        raise WrongOption(f"statecfg does not support ssh's option `{name}` here", suggest(name, KNOWN) or _ELSEWHERE)


def jump_of(command: str) -> str:
    """Return the jump host that a `ProxyCommand` of the form `ssh -W %h:%p [user@]host` goes through.

    :raises WrongOption: the command has another form, or uses a key for the jump host
    """
    if command.strip().lower() == "none":
        return "none"
    words = _split(command)
    help_text = "write -o ProxyJump=[USER@]HOST[:PORT]; set keys of the jump host in ~/.ssh/config"
    host = user = port = None
    forwards = False
    for flag, value in _flags(words[1:]) if words and words[0].rpartition("/")[2] == "ssh" else ():
        if flag == "W":
            forwards = value in ("%h:%p", "[%h]:%p")
        elif flag in ("p", "port"):
            port = value
        elif flag in ("l", "user"):
            user = value
        elif not flag and host is None:
            host = value
        elif not flag or flag in ("i", "F", "J", "identityfile", "proxyjump", "proxycommand"):
            what = "a key for the jump host" if flag in ("i", "identityfile") else f"`{value}`"
            raise WrongOption(f"the ProxyCommand uses {what}, which is not supported for jump hosts", help_text)
    if host is None or not forwards:
        raise WrongOption("statecfg can't run a ProxyCommand; it only reads `ssh -W %h:%p HOST`", help_text)
    if user and "@" not in host:
        host = f"{user}@{host}"
    return f"{host}:{port}" if port else host
