"""Isolates tests from each other, and lists the sizes of the bundle and the tests that this machine could not run."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from statecfg import resources
from statecfg.remote.graph.nodetype import REGISTRY, NodeType
from tests.lab.fixtures import NOT_RUN

# A shell starts programs in the background with SIGINT ignored, and the commands of tests would inherit that.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# The tests create many objects that live until the end, such as the trees of all source files. With the usual
# thresholds, the collector would look at all of them again and again.
gc.set_threshold(100_000, 20, 20)

# All runs of the suite use the same examples. `pytest --hypothesis-profile=default` uses new examples each time. There
# are no deadlines, because the machine may be busy.
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

# The directories with the slowest files come first. Otherwise, one worker could run such a file alone at the end.
ORDER = ("tests/host/corpus/", "tests/host/resources/", "tests/host/run/", "tests/host/docs/", "tests/host/", "tests/")


@pytest.fixture(scope="session")
def our_node_types() -> dict[str, NodeType[...]]:
    """Return the built-in node types by name, before any test changes them."""
    return {name: getattr(resources, name) for name in resources.available()}


@pytest.fixture(scope="session")
def node_types_of_tests() -> dict[str, NodeType[...]]:
    """Return the node types that test modules defined when they were imported."""
    return {name: found for name, found in REGISTRY.items() if found.module.startswith("tests.")}


@pytest.fixture(autouse=True)
def _node_types_as_they_were(
    our_node_types: dict[str, NodeType[...]], node_types_of_tests: dict[str, NodeType[...]]
) -> Iterator[None]:
    """Restore the node types.

    A test may define node types with the names of built-in ones. If a test loads a playbook of this checkout, a later
    project unloads the modules of the checkout with the node types of tests.
    """
    folders = list(resources.__path__)
    yield
    resources.__path__[:] = folders
    REGISTRY.update(node_types_of_tests)
    REGISTRY.update(our_node_types)
    for name, node_type in our_node_types.items():
        setattr(resources, name, node_type)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests by directory. pytest-xdist starts them in this order."""
    items.sort(key=lambda item: next(place for place, start in enumerate(ORDER) if item.nodeid.startswith(start)))


def pytest_collection_finish() -> None:
    """Exempt everything that exists now from garbage collection: modules and tests live until the end."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Do the same at the end, where pytest and Python look at all objects several times."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the sizes of the bundle, and all tests that this machine could not run, with the reasons."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    sizes = [str(value) for report in reports for key, value in report.user_properties if key == "bundle"]
    if sizes:
        terminalreporter.section("bundle")
        for size in sizes:
            terminalreporter.write_line(size)
    by_reason: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        by_reason.setdefault(reason.removeprefix("Skipped: "), []).append(report.nodeid)
    if by_reason:
        terminalreporter.section("NOT RUN", red=True, bold=True)
        for reason, tests in sorted(by_reason.items()):
            terminalreporter.write_line(f"{len(tests)} tests: {reason.removeprefix(NOT_RUN)}")
            for test in tests:
                terminalreporter.write_line(f"    {test}")


@pytest.fixture(scope="session", autouse=True)
def own_records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a temporary store and a temporary state directory for all tests of a worker, also as root."""
    records = tmp_path_factory.mktemp("records")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATECFG_STORE", str(records / "store.db"))
        patch.setenv("STATECFG_STATE_DIR", str(records / "state"))
        yield
