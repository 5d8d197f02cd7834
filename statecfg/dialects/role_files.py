"""Read roles: `role.yml` with parameters, variables and entries, and the function in `role.py` or `role.hy`."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from statecfg import resources, templates
from statecfg.dialects import modules, yaml_text, yaml_tree
from statecfg.dialects.yaml_entry import YamlEntry, YamlEntryReader, author, named_variables
from statecfg.dialects.yaml_loops import RESERVED
from statecfg.dialects.yaml_tree import Scalar, YamlNode
from statecfg.playbook import role as roles
from statecfg.playbook import role_path
from statecfg.playbook.plays import HostContext
from statecfg.playbook.role import CODE, FILE, FUNCTION, TYPES, Given, Parameter, Role
from statecfg.playbook.role_path import Found
from statecfg.playbook.user_code import guarded
from statecfg.problems import InvalidInput, collecting, inputs, problem, report, reporting, suggest
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import NOWHERE, SourceLocation
from statecfg.templates.ansible import STYLE

SHAPE = "a role: `params:` and `resources:`"
KEYS = ("description", "templates", "params", "vars", "resources")
PARAMETER_KEYS = ("type", "default", "required", "secret", "choices", "description")


@dataclass(frozen=True)
class RoleFiles:
    """A role that was read.

    :param variables: its `vars:`, which may be templates
    :param positions: the source locations of its parameters and variables
    :param entries: its `resources:`
    :param functions: the functions in `role.py` and `role.hy`
    """

    role: Role
    variables: Mapping[str, Any]
    positions: Mapping[str, SourceLocation]
    entries: list[YamlEntry]
    functions: tuple[Callable[[HostContext], Any], ...]

    def bound(self, given: Given, top: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the values of the parameters and variables; None if one is missing or wrong, which is reported.

        :param top: the variables of the play, which defaults and variables can use
        """
        values: dict[str, Any] = {}
        valid = roles.check_names(self.role, given)
        for parameter in self.role.parameters:
            name, location = parameter.name, parameter.position
            value: Any = templates.UNREADABLE
            if name in given.values:
                value, location = given.values[name], given.location(name)
            else:
                with reporting():
                    value = templates.resolve(parameter.default, {**top, **values})
            right = value is not templates.UNREADABLE
            if right and (name in given.values or not parameter.required):
                value, right = roles.checked(self.role, parameter, value, location)
            values[name] = value
            valid = valid and right
        for key, text in self.variables.items() if valid else ():
            values[key] = templates.UNREADABLE
            with reporting():
                values[key] = templates.resolve(text, {**top, **values})
        return values if valid else None


class Library:
    """The roles that a project can use. Each is read once.

    :param root: directory of the project
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._read: dict[str, RoleFiles | None] = {}  # None: it could not be read

    def get(self, name: str, location: SourceLocation) -> RoleFiles | None:
        """Return a role; None if it is missing or wrong, which is reported.

        :param location: the source location that includes it
        """
        if name not in self._read:
            self._read[name] = None
            found = None
            with reporting():
                found = role_path.find(self.root, name)
                if found is None:
                    report(self._missing(name, location))
            if found is not None:
                with collecting() as problems, reporting():
                    self._read[name] = read(found, self.root)
                report(*problems)
                if problems:
                    self._read[name] = None
        elif self._read[name] is None and role_path.find(self.root, name) is None:
            report(self._missing(name, location))
        return self._read[name]

    def _missing(self, name: str, location: SourceLocation) -> Any:
        help_text = suggest(name, role_path.names(self.root), "available")
        help_text = help_text or f"create roles/{name}/{FILE}; for a file of entries, write its name with .yml"
        return problem("SC0324", f"role {name} does not exist", help_text, location)


def described(root: str, names: Sequence[str]) -> list[Role]:
    """Return roles with their parameters.

    :param root: directory of the project
    :param names: the names of the roles; none for all
    :raises InvalidInput: a role is missing or wrong
    """
    modules.enter(root)
    library = Library(root)
    with collecting() as problems:
        files = [library.get(name, NOWHERE) for name in names or role_path.names(root)]
    if problems:
        raise InvalidInput(problems)
    return [item.role for item in files if item is not None]


def read(found: Found, root: str) -> RoleFiles:
    """Read a role, and report what is wrong.

    :param root: directory of the project
    """
    name, directory, origin = found
    resources.add_directory(os.path.join(directory, "resources"))
    file = os.path.join(directory, FILE)
    functions = [_function(os.path.join(directory, code), root) for code in CODE.values()]
    found_functions = tuple(function for function in functions if function is not None)
    if not os.path.isfile(file):
        return RoleFiles(Role(name, directory, origin), {}, {}, [], found_functions)
    inputs.note("role", file)
    top = yaml_tree.mapping(yaml_text.read(file, SHAPE), "a role", SHAPE)
    if top is None:
        return RoleFiles(Role(name, directory, origin), {}, {}, [], found_functions)
    yaml_tree.check_keys(top, "a role", KEYS)
    parameters = _parameters(top.items.get("params"), name)
    named = named_variables(top.items.get("vars"))
    positions = {item.name: item.position for item in parameters} | {
        key: location for key, (_, location) in named.items()
    }
    variables = {key: value for key, (value, _) in named.items()}
    for key in {item.name for item in parameters}.intersection(variables):
        detail = f"`{key}` of the role {name} is a parameter and a variable"
        location = next(item.position for item in parameters if item.name == key)
        report(problem("SC0325", detail, "rename one of them", location))
    description, style = _text(top.items.get("description")), _style(top.items.get("templates"))
    role = Role(name, directory, origin, description, parameters, style)
    return RoleFiles(
        role, variables, positions, YamlEntryReader().read(top.items.get("resources"), file), found_functions
    )


def _parameters(node: YamlNode | None, role: str) -> tuple[Parameter, ...]:
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return ()
    written = yaml_tree.mapping(node, "`params:` of a role", "params: {port: {type: port, default: 80}}")
    if written is None:
        return ()
    parameters = []
    for name, value in written.items.items():
        location = written.keys[name].location
        if not name.isidentifier() or name in RESERVED:
            help_text = f"use letters, digits and _, and none of {', '.join(RESERVED)}"
            report(problem("SC0308", f"`{name}` is not a valid name of a parameter", help_text, location))
        elif (parts := yaml_tree.mapping(value, f"the parameter `{name}`", f"{name}: {{type: string}}")) is not None:
            parameters.append(_parameter(name, parts, role, location))
    return tuple(parameters)


def _parameter(name: str, parts: yaml_tree.Mapping, role: str, location: SourceLocation) -> Parameter:
    yaml_tree.check_keys(parts, f"the parameter `{name}`", PARAMETER_KEYS)
    values = {key: author(node) for key, node in parts.items.items() if key in PARAMETER_KEYS}

    def wrong(key: str, detail: str, help_text: str) -> None:
        key_location = parts.keys[key].location if key in parts.keys else location
        report(problem("SC0325", f"the parameter `{name}` of the role {role}: {detail}", help_text, key_location))

    value_type = values.get("type", "any")
    if not isinstance(value_type, str) or value_type not in TYPES:
        wrong("type", f"unknown type {value_type}", suggest(str(value_type), TYPES, "available"))
        value_type = "any"
    for key in ("required", "secret"):
        if not isinstance(values.get(key, False), bool):
            wrong(key, f"`{key}` must be true or false", f"write {key}: true")
    choices = values.get("choices", [])
    if not isinstance(choices, list):
        wrong("choices", "`choices` must be a list", "write choices: [a, b]")
        choices = []
    required = values.get("required") is True
    if required and "default" in values:
        wrong("default", "it is required and has a default", "remove one of the two")
    parameter = Parameter(
        name,
        value_type,
        values.get("default"),
        required,
        values.get("secret") is True,
        _text(parts.items.get("description")),
        tuple(choices),
        location,
    )
    if parameter.default is not None and not _templated(parameter.default):
        try:
            parameter.check(parameter.default, role)
        except ValueError as error:
            wrong("default", f"the default: {error}", getattr(error, "help", ""))
    return parameter


def _templated(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_templated, value.values()))
    return isinstance(value, templates.Text) or (isinstance(value, list) and any(map(_templated, value)))


def _style(node: YamlNode | None) -> str:
    if node is None:
        return ""
    if isinstance(node, Scalar) and node.value == STYLE:
        return STYLE
    help_text = f"write `templates: {STYLE}`, or remove the key"
    report(problem("SC0310", f"`templates:` must be {STYLE}", help_text, node.location))
    return ""


def _text(node: YamlNode | None) -> str:
    if node is None:
        return ""
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return " ".join(node.value.split())
    detail = f"`description:` must be a string; this is {yaml_tree.describe(node)}"
    report(problem("SC0310", detail, "quote it", node.location))
    return ""


def _function(path: str, root: str) -> Callable[[HostContext], Any] | None:
    """Return the function of a role's code; None if there is no such file, or it is wrong, which is reported."""
    if not os.path.isfile(path):
        return None
    inputs.note("role", path)
    directory = os.path.dirname(path)
    module = types.ModuleType(modules.module_name(path))
    module.__file__ = path
    with reporting(), modules.importing(root, directory), guarded(f"loading {path}", file=path):
        sys.modules[module.__name__] = module
        _execute(module, path, root)
    function = getattr(module, FUNCTION, None)
    if not isinstance(function, types.FunctionType):
        detail = f"{os.path.basename(path)} defines no function `{FUNCTION}`"
        help_text = f"write a function {FUNCTION}(host) that returns nodes"
        report(problem("SC0325", detail, help_text, SourceLocation(path, 1)))
        return None
    takes_host = function.__code__.co_argcount or function.__code__.co_flags & 0x04

    def build(host: HostContext) -> Any:
        with modules.importing(root, directory):
            return function(host) if takes_host else function()

    return build


def _execute(module: types.ModuleType, path: str, root: str) -> None:
    if path.endswith(".hy"):
        source = import_module("statecfg.dialects.hy_source")
        source.install(root)
        source.install(os.path.dirname(path))
        source.execute(module, path)
        return
    with open(path, "rb") as stream:
        code = compile(stream.read(), path, "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102  # a role is a program
