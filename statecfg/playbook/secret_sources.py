"""Read the values of encrypted secrets, and of secrets that a program prints."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from statecfg.graph.opaque import Secret
from statecfg.playbook import age_files, ansible_vault, secret_programs, trust
from statecfg.playbook.secret_keys import Opened, Ring, SecretFailure
from statecfg.problems import suggest
from statecfg.problems.frozen import dataclass

LARGEST = 1 << 20  # bytes of an encrypted file


@dataclass(frozen=True)
class SecretSource:
    """Where the value of a secret is.

    :param type: `sops`, `age`, `vault` or `command`
    :param value: the absolute path of a file, or the encrypted text itself; the arguments of a program joined by NUL
    :param directory: the directory of the file that declares the secret
    :param key: the keys that lead to the value, if the source contains YAML; empty for the whole text
    """

    type: str
    value: str
    directory: str
    key: tuple[str, ...] = ()

    @property
    def argv(self) -> list[str]:
        """The program and its arguments."""
        return self.value.split("\0")

    @property
    def inline(self) -> bool:
        """Whether the value is the encrypted text itself."""
        checks = {"vault": ansible_vault.is_text, "age": age_files.is_text}
        return self.type in checks and checks[self.type](self.value)

    @property
    def shown(self) -> str:
        """Its name in messages."""
        if self.type == "command":
            return f"the output of `{self.argv[0]}`"
        return "the encrypted text" if self.inline else self.value


def missing(source: SecretSource) -> bool:
    """Return whether the file or program of a source does not exist on this machine."""
    if source.type == "command":
        return not secret_programs.installed(source.argv[0], source.directory)
    return not source.inline and not os.path.lexists(source.value)


def check(source: SecretSource) -> SecretFailure | None:
    """Return the cause if a source can't be right. It opens nothing, asks for nothing and runs nothing."""
    if source.type in ("sops", "command") or missing(source):
        return None
    data = _data(source)
    if isinstance(data, SecretFailure):
        return data
    cause = age_files.check(data) if source.type == "age" else _sealed(data)
    return SecretFailure(f"{source.shown} {cause.detail}", cause.help) if isinstance(cause, SecretFailure) else None


def read(ring: Ring, name: str, source: SecretSource, file: str) -> Secret | SecretFailure:
    """Return a secret with its value.

    :param name: its name in reports
    :param file: the file that declares it; a program that others could name is not run
    """
    opened = ring.once(("opened", source.type, source.value, bool(source.key)), partial(_opened, ring, source, file))
    if isinstance(opened, SecretFailure):
        return opened
    if source.key:
        return _selected(ring, name, source, opened)
    try:
        text = opened.data.decode("utf-8")
    except UnicodeDecodeError as error:
        return SecretFailure(
            f"{source.shown} is not UTF-8 text at byte offset {error.start}", "save the secret as UTF-8 text"
        )
    return Secret(name, text if source.inline else text.removesuffix("\n").removesuffix("\r"))


def _opened(ring: Ring, source: SecretSource, file: str) -> Opened | SecretFailure:
    if source.type == "command":
        return _printed(ring, source, file)
    data = _data(source)
    if isinstance(data, SecretFailure):
        return data
    opened: Opened | SecretFailure
    if source.type == "sops":
        opened = secret_programs.sops(source.value, bool(source.key))
    elif source.type == "age":
        opened = age_files.opened(ring, data, source.shown)
    else:
        sealed = _sealed(data)
        opened = sealed if isinstance(sealed, SecretFailure) else ansible_vault.opened(ring, sealed)
    return (
        SecretFailure(f"{source.shown}: {opened.detail}", opened.help) if isinstance(opened, SecretFailure) else opened
    )


def _printed(ring: Ring, source: SecretSource, file: str) -> Opened | SecretFailure:
    """Return what a program prints, unless another user could have chosen or written the program."""
    program = os.path.join(source.directory, source.argv[0]) if "/" in source.argv[0] else None
    for path, so in ((file, "does not run a program that it names"), (program, "does not run it")):
        untrusted = trust.others_could_change(Path(path)) if path is not None and os.path.exists(path) else None
        if untrusted is not None:
            return SecretFailure(f"{untrusted.detail}, so statecfg {so}", untrusted.help)
    return secret_programs.output(source.argv, source.directory, secret_programs.environment(ring.variables))


def _sealed(data: bytes) -> ansible_vault.Sealed | SecretFailure:
    return ansible_vault.parse(data.decode("utf-8", "replace"))


def _data(source: SecretSource) -> bytes | SecretFailure:
    """Return the encrypted data."""
    if source.inline:
        return source.value.encode("utf-8", "replace")
    path, help_text = source.value, "check the path"
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return SecretFailure(f"{path} is not a regular file", help_text)
            data = stream.read(LARGEST + 1)
    except OSError as error:
        return SecretFailure(f"{path} can't be read: {error.strerror}", help_text)
    return data if len(data) <= LARGEST else SecretFailure(f"{path} is larger than {LARGEST:,} bytes", "split it")


def _selected(ring: Ring, name: str, source: SecretSource, opened: Opened) -> Secret | SecretFailure:
    """Return the value of a key."""
    document = ring.once(("document", source.type, source.value), partial(_document, source, opened))
    if isinstance(document, SecretFailure):
        return document
    node = document
    done: list[str] = []
    for key in source.key:
        inner = _inner(node, key)
        if inner is None:
            of_it = f" in `{'.'.join(done)}`" if done else ""
            # The names of keys are secret too, except in a file of sops, where they are not encrypted.
            known = list(_keys(node)) if source.type == "sops" else []
            help_text = suggest(key, known) if known else "write the path to a string as key: NAME.NAME"
            return SecretFailure(f"{source.shown} has no key `{key}`{of_it}", help_text)
        node, done = inner, [*done, key]
    if not isinstance(node.data, str):
        what = "a list or a map" if isinstance(node.data, (list, dict)) else "not text"
        return SecretFailure(
            f"`{'.'.join(done)}` in {source.shown} is {what}", "write the path to a string as key: NAME.NAME"
        )
    return Secret(name, node.data)


def _inner(node: Opened, key: str) -> Opened | None:
    if isinstance(node.data, dict) and key in node.data:
        return Opened(node.data[key])
    if isinstance(node.data, list) and key.isdecimal() and int(key) < len(node.data):
        return Opened(node.data[int(key)])
    return None


def _keys(node: Opened) -> Iterator[str]:
    yield from (key for key in node.data if isinstance(key, str)) if isinstance(node.data, dict) else ()


def _document(source: SecretSource, opened: Opened) -> Opened | SecretFailure:
    """Return the lists, maps and strings of decrypted YAML or JSON. Numbers stay the strings that were written."""
    load: Any = partial(yaml.load, Loader=yaml.BaseLoader)
    if source.type == "sops":
        load = partial(json.loads, parse_int=str, parse_float=str)
    line = 0
    try:
        return Opened(load(opened.data.decode("utf-8")))
    except yaml.MarkedYAMLError as error:  # its text contains the line
        line = error.problem_mark.line + 1 if error.problem_mark else 0
    except (ValueError, yaml.YAMLError, RecursionError):
        pass
    position = f" at line {line}" if line else ""
    return SecretFailure(
        f"{source.shown}, decrypted, is not YAML{position}", "remove `key:` if the whole text is the secret"
    )
