"""Checks many small cases in one test.

Each test costs several milliseconds in the processes of pytest, many times what a small case takes. So a table of cases
is one test, which checks every case and then reports all that failed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from statecfg.graph import outputs
from statecfg.problems import tokens

SEPARATE = ((tokens, "_SECRETS"), (outputs, "_OUTPUTS"), (outputs, "_BY_REFERENCE"))
PARAM = type(pytest.param())
SHOWN = 300  # characters of a case without a name


@contextmanager
def separate_secrets() -> Iterator[None]:
    """Forget the secrets of a case afterwards, because messages of later cases would mask their values."""
    former = [(module, name, getattr(module, name)) for module, name in SEPARATE]
    for module, name, value in former:
        setattr(module, name, value.copy())
    try:
        yield
    finally:
        for module, name, value in former:
            setattr(module, name, value)


def check_each(cases: Mapping[str, Any], check: Callable[[Any], object]) -> None:
    """Call `check` for each case, and fail with all errors if some of the calls fail.

    :param cases: the cases by name
    :param check: raises an exception if a case is wrong
    :raises BaseExceptionGroup: the errors; the note of each error names its case
    """
    _check([(name, functools.partial(check, case)) for name, case in cases.items()])


def each(names: str | Sequence[str], cases: Iterable[Any], ids: object = None) -> Callable[[Any], Any]:
    """Call a test for each case, as `pytest.mark.parametrize` does with the same arguments, but in one test.

    Each case has its own `tmp_path`, and `monkeypatch` is undone after it. Other fixtures are the same for all cases.

    :param ids: the names of the cases; without it, their values
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = list(cases)
    titles = list(map(str, ids)) if isinstance(ids, Iterable) else None

    def decorate(test: Callable[..., object]) -> Callable[..., None]:
        @functools.wraps(test)
        def whole(**fixtures: Any) -> None:
            def check(number: int) -> None:
                values = dict(zip(arguments, _values(table[number], len(arguments)), strict=True))
                with _of_one_case(fixtures, number) as own:
                    test(**values, **own)

            named = titles or map(_title, table)
            _check([(name, functools.partial(check, number)) for number, name in enumerate(named)])

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        whole.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # pytest reads it
        return whole

    return decorate


@contextmanager
def _of_one_case(fixtures: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """Give the fixtures for one case."""
    own = dict(fixtures)
    if "tmp_path" in own:
        own["tmp_path"] /= f"case-{number}"
        own["tmp_path"].mkdir()
    if "monkeypatch" not in own:
        yield own
        return
    with own["monkeypatch"].context() as own["monkeypatch"]:
        yield own


def _values(case: Any, count: int) -> Sequence[Any]:
    if isinstance(case, PARAM):
        return case.values
    return case if count > 1 else (case,)


def _title(case: Any) -> str:
    try:
        title = str((isinstance(case, PARAM) and case.id) or repr(case))
    except ValueError:  # Python does not convert very long numbers
        return f"a long {type(case).__name__}"
    return title if len(title) <= SHOWN else f"{title[:SHOWN]}…"


def _check(cases: Sequence[tuple[str, Callable[[], object]]]) -> None:
    assert cases, "there are no cases"
    errors: list[BaseException] = []
    for name, check in cases:
        try:
            with separate_secrets():
                check()
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"Case: {name}")
            errors.append(error)
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} of {len(cases)} cases failed", errors)
