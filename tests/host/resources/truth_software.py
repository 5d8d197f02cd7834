"""Cases for the node types for software and databases (see `truth`)."""

from __future__ import annotations

from statecfg.graph.graph import Graph
from statecfg.resources import git_checkout, python_venv
from tests.host.resources.truth_case import Case
from tests.host.resources.wheels import wheel
from tests.lab import Host

REPOSITORY = "/srv/truth-repository"
COMMIT = """
git init -q "$1" && cd "$1" && echo "$2" > f && git add f && git -c user.name=a -c user.email=a@b commit -qm "$2"
"""


def _git(root: str, requires: list[Graph]) -> list[Graph]:
    return [
        git_checkout(root, repository=REPOSITORY, requires=requires),
        git_checkout(f"{root}-gone", absent=True, requires=requires),
    ]


def _git_bare(host: Host, root: str) -> None:
    host.run(["sh", "-c", COMMIT, "sh", REPOSITORY, "one"])


def _git_drift(host: Host, root: str) -> None:
    host.run(["sh", "-c", COMMIT, "sh", REPOSITORY, "two"])
    host.run(["git", "clone", "--quiet", REPOSITORY, f"{root}-gone"])


def _venv(root: str, requires: list[Graph]) -> list[Graph]:
    packages = ["shop_tool==1.0", "helper"]
    return [python_venv(root, packages=packages, find_links=f"{root}-wheels", requires=requires)]


def _venv_bare(host: Host, root: str) -> None:
    for name, version in (("shop_tool", "1.0"), ("shop_tool", "2.0"), ("helper", "1")):
        wheel(host, f"{root}-wheels", name, version)


def _venv_drift(host: Host, root: str) -> None:
    pip = [f"{root}/bin/python", "-m", "pip", "install", "-q", "--no-index", "--find-links", f"{root}-wheels"]
    host.run([*pip, "shop_tool==2.0"])


SOFTWARE = [
    Case("python_venv", _venv, _venv_drift, _venv_bare),
    Case("git_checkout", _git, _git_drift, _git_bare),
]
