"""Packages of Node.js."""

from __future__ import annotations

import re
from typing import Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, Seconds, UserName, node_type
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.packages.languages import npm
from statecfg.resources.shared import paths

_WORD = "[a-z0-9~-][a-z0-9._~-]*"


@node_type
def npm_package(
    name: PublicLine,
    *,
    version: PublicLine | None = None,
    prefix: AbsolutePath = "/usr/local",
    registry: PublicLine | None = None,
    ca: AbsolutePath | None = None,
    run_scripts: bool = False,
    user: UserName | None = None,
    timeout: Seconds = 600.0,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a package that npm installs globally, such as a program of Node.js.

    The check reads the version in the installed package; it runs no program and asks no registry. Without `version`,
    the package is installed if it is missing, and never upgraded. The host needs npm.

    npm doesn't run the scripts of the package and its dependencies unless you set `run_scripts`.

    Undo: statecfg removes a package that it installed, or restores the former version. With `version`, another version
    that others have installed since stays.

    :param name: the name of the package, such as ``pm2`` or ``@angular/cli``
    :param version: the exact version, such as ``5.3.0``
    :param prefix: the directory with ``lib/node_modules`` and ``bin``
    :param registry: the URL of the registry; default: that of npm's configuration
    :param ca: a file of the host with certificates of authorities, for the registry
    :param run_scripts: run the scripts that packages declare for their installation
    :param user: the user who runs npm; default: the only user besides root who can change the prefix, otherwise root
    :param timeout: seconds for an installation
    :param absent: the package must not be installed

    In YAML::

        - npm_package: pm2
          version: 5.3.0
          registry: https://npm.example.org/
          requires: ["package:npm"]

    In Python::

        npm_package("@example/tool", prefix="/opt/tool", user="deploy")
    """


@npm_package.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the directory of the package."""
    return ["path:" + npm.directory(attrs)]


@npm_package.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid names, versions and addresses, and attributes that have no effect."""
    paths.refuse_with_absent({**attrs, "timeout": None}, ("name", "prefix", "user", "absent"))
    if len(attrs["name"]) > 214 or not re.fullmatch(
        r"(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*", attrs["name"]
    ):
        raise Wrong(f"{show(attrs['name'])} is not the name of a package", "write it without a version, such as pm2")
    version, registry = attrs.get("version"), attrs.get("registry")
    if version is not None and not re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", version):
        raise Wrong(f"version: {show(version)} is not an exact version", "write all three numbers, such as 5.3.0")
    if registry is not None and (not re.fullmatch(r"https?://[^\s/@]+(/\S*)?", registry)):
        raise Wrong(f"registry: {show(registry)} is not a URL without a password", "logins belong to the file ~/.npmrc")


npm_package.needs(["inside:{prefix}/any", "program:npm", "user:{user}"])
npm_package.managed_by(npm.NpmPackage)
