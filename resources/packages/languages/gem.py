"""Gems of Ruby."""

from __future__ import annotations

import re
from typing import Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, Seconds, UserName, node_type
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.packages.languages import gems
from statecfg.resources.shared import paths


@node_type
def gem(
    name: PublicLine,
    *,
    version: PublicLine | None = None,
    only_version: bool = False,
    directory: AbsolutePath | None = None,
    bin: AbsolutePath | None = None,
    user_install: bool = False,
    source: PublicLine | None = None,
    ca: AbsolutePath | None = None,
    user: UserName | None = None,
    timeout: Seconds = 600.0,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a Ruby gem, with the gems that it needs.

    The check reads the specifications of installed gems; it asks no server. Without `version`, the gem is installed if
    no version of it is installed, and never upgraded. Several versions of a gem can be installed, and Ruby uses the
    newest. The host needs Ruby. Gems that come with Ruby or with packages of the host don't count.

    A gem with an extension in C is compiled during its installation, which runs code of the gem.

    Undo: statecfg removes the versions that it installed, and installs those that it removed. It keeps the gems that
    came as dependencies. The removal fails if other gems need the gem.

    :param name: the name of the gem, such as ``puma``
    :param version: the exact version, such as ``6.4.2``
    :param only_version: remove all other versions of the gem
    :param directory: the directory of gems (``GEM_HOME``); default: that of Ruby, for all users
    :param bin: the directory of programs; default: ``bin`` in `directory`, or the one that Ruby uses
    :param user_install: use the directory of gems in the home of `user`
    :param source: the URL of a server of gems, or ``file:`` and the path of a directory with an index; default: those
        of the configuration of gem
    :param ca: a file of the host with certificates of authorities, for the server
    :param user: the user who runs gem; default: the only user besides root who can change `directory`, otherwise root
    :param timeout: seconds for an installation
    :param absent: no version of the gem must be installed

    In YAML::

        - gem: puma
          version: 6.4.2
          source: https://gems.example.org/
          requires: ["package:ruby"]

    In Python::

        gem("shop-tool", directory="/srv/shop/gems", user="deploy")
    """


@gem.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the gem in its directory."""
    where = attrs.get("directory") or (f"home of {attrs.get('user')}" if attrs.get("user_install") else "default")
    return [f"gem:{where}: {attrs['name']}"]


gem.owns(["part:path:{directory}", "part:path:{bin}"])


@gem.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid names, versions and addresses, and attributes that have no effect."""
    allowed = ("name", "directory", "bin", "user_install", "user", "absent")
    paths.refuse_with_absent({**attrs, "timeout": None}, allowed)
    version, source = attrs.get("version"), attrs.get("source")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", attrs["name"]):
        raise Wrong(f"{show(attrs['name'])} is not the name of a gem", "write it without a version, such as puma")
    if version is not None and not re.fullmatch(r"[0-9]+(\.[0-9A-Za-z]+)*", version):
        raise Wrong(f"version: {show(version)} is not an exact version", "write all its parts, such as 6.4.2")
    if attrs.get("only_version") and version is None:
        raise ValueError("only_version requires version")
    if attrs.get("user_install") and (attrs.get("directory") or attrs.get("bin")):
        raise ValueError("user_install can't be combined with directory or bin")
    if attrs.get("bin") and not attrs.get("directory"):
        raise ValueError("bin requires directory")
    if source is not None and not re.fullmatch(r"https?://[^\s/@]+(/\S*)?|file:(//)?/\S*", source):
        raise Wrong(f"source: {show(source)} is not a URL without a password", "logins belong to the file ~/.gemrc")


gem.needs(["program:ruby", "program:gem", "inside:{directory}", "user:{user}"])
gem.implemented_by(gems)
