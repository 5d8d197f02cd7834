"""Check the arguments of the Hy macros and convert them for the expansions. Only `hy.hy` imports this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from statecfg.dialects import hy_source
from statecfg.dialects.hy_source import BadForm

WORDS = {"spit": "(. machine spit)", "slurp": "(. machine slurp)", "sh": "(_borg.shell machine)"}


def form_type(form: Any) -> str:
    """Return the type of a form: the name of its model, such as "Symbol", "List" or "String"."""
    return type(form).__name__


def attribute_names(vector: Iterable[Any], defaults: bool = False) -> Mapping[str, Any]:
    """Return the names in a vector of symbols, with their defaults.

    :param defaults: whether an entry can also be a pair `[name default]`
    :returns: name → the form of its default; None for none
    :raises BadForm: an entry is not a name, or is repeated
    """
    defaults_by_name: dict[str, Any] = {}
    for form in vector:
        name, default = form, None
        if defaults and form_type(form) == "List" and len(form) == 2:
            name, default = form
        if form_type(name) not in ("Symbol", "Keyword"):
            raise BadForm("expected a name here", form)
        written = str(name).lstrip(":")
        if written in defaults_by_name:
            raise BadForm(f"the vector contains {written} twice", form)
        defaults_by_name[written] = default
    return defaults_by_name


def op_parameters(vector: Iterable[Any]) -> list[str]:
    """Return the names of an op's parameters. A parameter with a default is a pair `[name default]`."""
    names = []
    for form in vector:
        name = form[0] if form_type(form) == "List" and len(form) == 2 else form
        if form_type(name) != "Symbol" or str(name) in ("*", "/", "&"):
            raise BadForm("write the parameter as a name or as [name default]", form)
        names.append(str(name))
    return names


def op_options(written: Any) -> Mapping[str, Any]:
    """Return the options of a `defop`, `{:mutex "apt" :batch "packages"}`, by name."""
    pairs = list(written)
    options = {}
    for key, value in zip(pairs[::2], pairs[1::2], strict=False):
        name = key.name if form_type(key) == "Keyword" else str(key)
        if name == "turn":
            hy_source.warn_of_former("the option :turn of defop", ":mutex", key)
            name = "mutex"
        if name not in ("mutex", "batch"):
            raise BadForm(f"defop has no option {name}; it has :mutex and :batch", key)
        options[name] = value
    return options


def method_name(written: Any) -> str:
    """Return the name of the method of a `defmethod`."""
    name = str(written)
    if name == "claims":
        hy_source.warn_of_former("(defmethod claims …)", "(defmethod identity …)", written)
        name = "identity"
    return name


def symbols(form: Any) -> Iterator[str]:
    """Yield the names of all symbols in a form."""
    if form_type(form) == "Symbol":
        yield str(form)
    elif form_type(form) in ("Expression", "List", "Dict", "Set", "Tuple", "FString", "FComponent"):
        for part in form:
            yield from symbols(part)


def bind_words(parameters: Iterable[Any], body: Iterable[Any]) -> list[Any]:
    """Return forms that bind the Borg document's words in the body of an op to its machine."""
    used = {name for form in body for name in symbols(form)} - set(op_parameters(parameters))
    return [hy_source.form(f"(setv {word} {value})") for word, value in WORDS.items() if word in used]


def body_data(body: Iterable[Any]) -> Any:
    """Return a body as plain data, `["fn", [], …]`, with symbols as their names. Source: the Borg document."""
    return ["fn", [], *(plain(form) for form in body)]


def plain(form: Any) -> Any:
    """Return a form as lists, numbers and text. A string keeps its quotes, which distinguish it from a symbol."""
    name = form_type(form)
    if name in ("Expression", "List", "Tuple", "Set"):
        return [plain(part) for part in form]
    if name == "Dict":
        return ["dict", *(plain(part) for part in form)]
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
    """Return validators by attribute. Each clause is a list with the forms of its predicate and transforms."""
    by_attribute: dict[str, list[list[Any]]] = {}
    for form in forms:
        if form_type(form) != "Expression" or len(form) < 2 or form_type(form[0]) not in ("Symbol", "Keyword"):
            raise BadForm("write a validator as (attribute predicate transform…)", form)
        by_attribute.setdefault(str(form[0]).lstrip(":"), []).append(list(form[1:]))
    return by_attribute
