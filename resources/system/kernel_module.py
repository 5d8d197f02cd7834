"""Modules of the kernel."""

from __future__ import annotations

from typing import Unpack

from statecfg import Attrs, Name, NodeOptions, PublicLine, node_type
from statecfg.resources.shared import entry_rules, paths
from statecfg.resources.system import kernel_modules, modprobe_files


@node_type
def kernel_module(
    name: Name,
    *,
    parameters: dict[str, int | PublicLine] | None = None,
    at_boot: bool = True,
    blocked: bool = False,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Load a kernel module, now and at boot, or prevent that it is loaded.

    The files are /etc/modules-load.d/NAME.conf and, with `parameters` or `blocked`, /etc/modprobe.d/NAME.conf. New
    parameters apply when the module is loaded next; statecfg does not reload it. A module that is built into the kernel
    counts as loaded. Most containers can't load modules. If a line of another file in a modprobe.d wins, such as
    ``blacklist`` or ``install``, the node fails and names it, already in the plan.

    Undo: statecfg restores both files. It unloads a module that was not loaded before, unless something uses it, and
    loads one that was.

    :param name: the name of the module, as ``lsmod`` shows it; aliases are not supported
    :param parameters: parameters of the module; modinfo(8) lists them
    :param at_boot: false: load the module now, and leave /etc/modules-load.d as it is
    :param blocked: true: the module must not be loaded, and can't be loaded, not even for a device or by another module
    :param allow_override: accept that another file wins
    :param absent: the module must not be loaded, and its two files must not exist

    In YAML::

        - kernel_module: br_netfilter
        - kernel_module: cramfs
          blocked: true

    In Python::

        kernel_module("nf_conntrack", parameters={"hashsize": 131072})
    """


@kernel_module.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the module and its files."""
    files = [path % attrs["name"] for path in (kernel_modules.BOOT, kernel_modules.OPTIONS)]
    return ["kernel module:" + kernel_modules.key(attrs["name"]), *("path:" + path for path in files)]


@kernel_module.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse an invalid name or parameter, and attributes that contradict each other."""
    paths.refuse_with_absent({**attrs, "at_boot": None}, ("name", "absent"))
    if attrs.get("blocked") and attrs.get("parameters"):
        raise ValueError("blocked can't be combined with parameters")
    entry_rules.check_module(attrs["name"], attrs.get("parameters") or {})


kernel_module.effect(modprobe_files.effect)
kernel_module.managed_by(kernel_modules.KernelModule)
