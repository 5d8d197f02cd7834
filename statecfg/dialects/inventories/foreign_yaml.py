"""Read YAML files that were written for Ansible: by the rules of YAML 1.1, with source locations."""

from __future__ import annotations

import datetime
from typing import Any

import yaml

from statecfg.dialects import scalars, yaml_text, yaml_tree
from statecfg.dialects.yaml_composer import Composer
from statecfg.dialects.yaml_tree import Mapping, Scalar, Sequence, YamlNode
from statecfg.playbook import secrets
from statecfg.problems import SourceLocation, problem, report

# Ansible's tags. A value with `!unsafe` is never a template.
UNSAFE = "!unsafe"
VAULTS = ("!vault", "!vault-encrypted")
TEMPLATES = ("{{", "{%", "{#")
VAULT_FILE = b"$ANSIBLE_VAULT;"  # the first bytes of a file that Ansible Vault encrypted
_CORE = tuple(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq"))
_READ = (*_CORE, "tag:yaml.org,2002:timestamp")
_EMPTY = "SC0303"


def read(path: str) -> YamlNode | None:
    """Return the tree of a file; None for an empty file. Report its problems.

    :raises InvalidInput: the file can't be read or is not YAML
    """
    composer = _Composer(scalars.decode(yaml_text.content(path), path), path, "variables")
    root = composer.compose()
    report(*(item for item in composer.problems if item.code != _EMPTY))
    return root


def value(node: YamlNode, name: str) -> Any:
    """Return the value of a tree. Report each template in it: variables of statecfg are values.

    :param name: the name of the variable
    """
    _refuse_templates(node, name)
    return yaml_tree.plain(node, _tagged, name)


def is_template(text: str) -> bool:
    """Return whether Ansible would evaluate a string as a template."""
    return any(mark in text for mark in TEMPLATES)


def template(what: str, location: SourceLocation) -> None:
    """Report a template in a value.

    :param what: the variable or the text that contains it
    """
    detail = f"{what} contains a template, which statecfg does not evaluate in an inventory"
    help_text = "write the value; or set it in the play's `vars:`, where templates can use the host's variables"
    report(problem("SC0415", detail, help_text, location))


def vaulted(text: Any, name: str, location: SourceLocation) -> Any:
    """Return the secret in a value that Ansible Vault encrypted. It is opened when something needs it.

    :param text: the encrypted text, as it is written
    :param name: the name of the variable
    """
    return secrets.tagged("!vault", text, location, name)


def vaulted_file(path: str) -> bool:
    """Return whether Ansible Vault encrypted a file of variables. Report it if the run needs its secrets."""
    if not yaml_text.content(path).startswith(VAULT_FILE):
        return False
    help_text = "encrypt its values instead, or set its variables in the play: NAME: !secret {vault: FILE, key: NAME}"
    secrets.unavailable(path, "Ansible Vault encrypted the file", help_text, SourceLocation(path, 1))
    return True


def _refuse_templates(root: YamlNode, name: str) -> None:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            waiting.extend(node.items.values())
        elif isinstance(node, Sequence):
            waiting.extend(node.items if node.tag != UNSAFE else ())
        elif isinstance(node, Scalar) and isinstance(node.value, str) and node.tag is None and is_template(node.value):
            template(f"`{name}`", node.location)


def _tagged(tag: str, inner: Any, location: SourceLocation, name: str) -> Any:
    return vaulted(inner, name, location) if tag in VAULTS else inner


class _Composer(Composer):
    """Reads scalars as YAML 1.1 does, merges maps with `<<`, and makes all keys strings."""

    def __init__(self, text: str, file: str, shape: str) -> None:
        super().__init__(text, file, shape)
        self.resolver: Any = yaml.resolver.Resolver()
        self.constructor = yaml.constructor.SafeConstructor()
        self.merges: dict[int, list[YamlNode]] = {}

    def _tag(self, event: Any) -> str | None:
        if event.tag is None or event.tag == "!" or event.tag in _CORE:
            return None
        if event.tag == UNSAFE or event.tag in VAULTS:
            return str(event.tag)
        help_text = f"remove the tag; inventories can use {UNSAFE} and {VAULTS[0]}"
        self._report("SC0312", f"{event.tag}: the tag is unknown", help_text, self._location(event))
        return None

    def _scalar(self, event: Any) -> Scalar:
        at, tag = self._at(event), self._tag(event)
        if tag is not None or (event.style and event.tag not in _CORE):
            return Scalar(at, tag, event.value, event.style == "|")
        resolved = (
            event.tag if event.tag in _CORE else self.resolver.resolve(yaml.ScalarNode, event.value, (True, False))
        )
        if resolved not in _READ:  # `<<` and `=` have special types
            return Scalar(at, None, event.value)
        try:
            found = self.constructor.construct_object(yaml.ScalarNode(resolved, event.value))
        except (ValueError, KeyError, yaml.YAMLError) as error:
            detail = f"`{scalars.shorten(event.value)}`: {error}"
            self._report("SC0315", detail, "quote it, if it is a string", SourceLocation(*at))
            found = ""
        # Variables have the types of JSON, so dates are strings, as in the output of `ansible-inventory`.
        return Scalar(at, None, found.isoformat() if isinstance(found, datetime.date) else found)

    def _key(self, parent: Mapping, key: Scalar) -> None:
        if key.value == "<<" and key.tag is None:
            self.pending = key
            return
        if not isinstance(key.value, str):
            special = {"None": "null", "True": "true", "False": "false"}
            written = special.get(repr(key.value), str(key.value))
            key = Scalar((key.file, key.line, key.column), None, written)
        super()._key(parent, key)

    def _attach(self, node: YamlNode) -> None:
        parent = self.stack[-1][0] if self.stack else None
        if not isinstance(parent, Mapping) or self.pending is None or self.pending.value != "<<":
            super()._attach(node)
            return
        parent.size += node.size
        self.pending = None
        merged = node.items if isinstance(node, Sequence) else [node]
        for one in merged:
            if not isinstance(one, Mapping):
                self._report("SC0308", "`<<` merges only maps", "name an anchor of a map: <<: *NAME", node.location)
        self.merges.setdefault(id(parent), []).extend(merged)

    def _end(self) -> None:
        node = self.stack[-1][0]
        for merged in self.merges.pop(id(node), ()):
            if isinstance(node, Mapping) and isinstance(merged, Mapping):
                for key, item in merged.items.items():
                    node.items.setdefault(key, item)
                    node.keys.setdefault(key, merged.keys[key])
        super()._end()
