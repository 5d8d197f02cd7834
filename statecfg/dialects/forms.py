"""The parts of the Hy macros' forms: checked, and turned into what the expansions need. Imported by `hy.hy` only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from statecfg.remote.graph.errors import StatecfgError

WORDS = {"spit": "(. machine spit)", "slurp": "(. machine slurp)", "sh": "(_borg.shell machine)"}


class BadForm(StatecfgError):
    """A macro was given something it can't use; `form` is the part of its call that is wrong."""

    def __init__(self, message: str, form: Any) -> None:
        super().__init__(message)
        self.form = form


def kind(form: Any) -> str:
    """Return what a form is ("Symbol", "List", "String", …) by the name of its model."""
    return type(form).__name__


def attribute_names(vector: Iterable[Any], defaults: bool = False) -> dict[str, Any]:
    """Return the names in a vector of symbols; with `defaults` an entry may also be a pair `[name default]`."""
    found: dict[str, Any] = {}
    for form in vector:
        name, default = form, None
        if defaults and kind(form) == "List" and len(form) == 2:
            name, default = form
        if kind(name) not in ("Symbol", "Keyword"):
            raise BadForm("expected a name here", form)
        written = str(name).lstrip(":")
        if written in found:
            raise BadForm(f"{written} stands here twice", form)
        found[written] = default
    return found


def op_parameters(vector: Iterable[Any]) -> list[str]:
    """Return the names of an op's parameters; one with a default is a pair `[name default]`."""
    names = []
    for form in vector:
        name = form[0] if kind(form) == "List" and len(form) == 2 else form
        if kind(name) != "Symbol" or str(name) in ("*", "/", "&"):
            raise BadForm("a parameter here is a name, or [name default]", form)
        names.append(str(name))
    return names


def op_options(given: Any) -> dict[str, Any]:
    """Return the options of a `defop`, `{:turn "apt" :batch "packages"}`, by name."""
    pairs = list(given)
    found = {}
    for key, value in zip(pairs[::2], pairs[1::2], strict=False):
        name = key.name if kind(key) == "Keyword" else str(key)
        if name not in ("turn", "batch"):
            raise BadForm(f"defop has no option {name}; it has :turn and :batch", key)
        found[name] = value
    return found


def symbols(form: Any) -> Iterator[str]:
    """Yield the names of all symbols in a form."""
    if kind(form) == "Symbol":
        yield str(form)
    elif kind(form) in ("Expression", "List", "Dict", "Set", "Tuple", "FString", "FComponent"):
        for part in form:
            yield from symbols(part)


def bind_words(parameters: Iterable[Any], body: Iterable[Any]) -> list[Any]:
    """Return forms that bind those of the document's words that `body` uses to the op's machine."""
    used = {name for form in body for name in symbols(form)} - set(op_parameters(parameters))
    from statecfg.dialects import hy_source

    return [hy_source.form(f"(setv {word} {value})") for word, value in WORDS.items() if word in used]


def body_data(body: Iterable[Any]) -> Any:
    """Return the body as a list of plain data, `["fn", [], …]`, as the document shows it: symbols by their names."""
    return ["fn", [], *(plain(form) for form in body)]


def plain(form: Any) -> Any:
    """Return a form as lists, numbers and text; a string keeps its quotes, which tells it from a symbol."""
    name = kind(form)
    if name in ("Expression", "List", "Tuple", "Set"):
        return [plain(each) for each in form]
    if name == "Dict":
        return ["dict", *(plain(each) for each in form)]
    if name == "Integer":
        return int(form)
    if name == "Float":
        return float(form)
    if name == "String":
        return '"' + str(form) + '"'
    if name == "Symbol" and str(form) in ("True", "False", "None"):
        return {"True": True, "False": False}.get(str(form))
    return str(form)


def clauses(forms: Iterable[Any]) -> dict[str, list[list[Any]]]:
    """Return validators by attribute, each clause a list of the predicate's and the transforms' forms."""
    found: dict[str, list[list[Any]]] = {}
    for form in forms:
        if kind(form) != "Expression" or len(form) < 2 or kind(form[0]) not in ("Symbol", "Keyword"):
            raise BadForm("a validator is (attribute predicate transform…)", form)
        found.setdefault(str(form[0]).lstrip(":"), []).append(list(form[1:]))
    return found
