"""Virtual environments of Python."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, Seconds, UserName, node_type
from statecfg.resources.packages.languages import venv_rules, venvs
from statecfg.resources.shared import paths


@node_type
def python_venv(
    path: AbsolutePath,
    *,
    packages: list[PublicLine] | None = None,
    python: AbsolutePath = "/usr/bin/python3",
    system_site_packages: bool = False,
    index: PublicLine | None = None,
    find_links: AbsolutePath | None = None,
    ca: AbsolutePath | None = None,
    user: UserName | None = None,
    timeout: Seconds = 600.0,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a Python virtual environment, and packages in it that pip installs.

    The check compares the installed versions with `packages`; it runs no program and asks no index. A package without a
    version is installed if it is missing, and never upgraded. Other packages in the environment stay. If something that
    an extra needs is missing, pip installs the package again. `python` and `system_site_packages` only apply to a new
    environment, and to one whose Python is gone: it gets this one. The host needs Python's module venv (Debian:
    python3-venv).

    Undo: statecfg removes an environment that it created. In an older one, it removes the packages that it installed,
    and restores the former versions of others. Packages that came as dependencies stay, and so do other versions that
    others have installed since.

    :param path: the directory of the environment
    :param packages: names of packages, each with an exact version if you want one, such as ``gunicorn==21.2.0``; extras
        such as ``uvicorn[standard]`` are allowed
    :param python: the program that creates the environment
    :param system_site_packages: whether the environment can use the packages of the system
    :param index: the URL of an index of packages; default: PyPI
    :param find_links: a directory of the host with packages; without `index`, pip uses only this directory
    :param ca: a file of the host with certificates of authorities, for the index
    :param user: the user who runs pip and owns the files; default: the only user besides root who can change the place
    :param timeout: seconds for an installation
    :param absent: there must be no environment at the path

    In YAML::

        - python_venv: /srv/shop/venv
          packages: [gunicorn==21.2.0, shop==1.4.2]
          index: https://pypi.example.org/simple/
          user: deploy

    In Python::

        python_venv("/opt/tool", packages=["ansible-core"], requires=[package("python3-venv")])
    """


python_venv.identity(paths.path_identity)


@python_venv.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid packages and addresses, and attributes that have no effect."""
    if attrs.get("absent"):
        paths.refuse_with_absent({**attrs, "python": None, "timeout": None}, ("path", "absent"))
    venv_rules.check(attrs)


python_venv.implemented_by(venvs)
