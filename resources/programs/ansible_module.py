"""Ansible modules, while a node type is missing."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Name, NodeOptions, PublicLine, Seconds, UserName, node_type
from statecfg.resources.programs import ansible_rules, ansible_runs


@node_type
def ansible_module(
    name: Name,
    *,
    module: PublicLine,
    arguments: dict[str, Any] | None = None,
    when_triggered: bool = False,
    read_back: bool = True,
    user: UserName | None = None,
    effects: dict[str, Any] | None = None,
    timeout: Seconds = 600.0,
    **options: Unpack[NodeOptions],
) -> None:
    """Run an Ansible module on the host. Use it during a migration, until there is a node type for it.

    Your machine needs ansible-core (``pip install 'statecfg[ansible]'``) and the module's collection; hosts only need
    Python. `validate` checks the module's name and its arguments against its documentation.

    A module that fully supports check mode runs in check mode in plans, and the plan shows its diff. If a required node
    changes something first, its result is `known after` that node. After an apply, check mode must report no more
    changes. For other modules, the plan shows that the result is known after the module has run, and every apply runs
    the module. The node is unchanged if the module reports no change. If a node in `restart_on` changes, the module
    runs.

    statecfg can't see what a module changes. It therefore reports what requires the node as `known after` it, unless
    `effects` lists the changes. Modules run one at a time on a host, but not before or after other nodes: use
    `requires` if another node edits the same object.

    Arguments can contain secrets. They are sent through standard input, and masked in plans and reports; so are
    arguments that the module declares as `no_log`. statecfg does not control what a module does with its arguments.

    Undo: none. When the node leaves the definition, what the module did stays.

    :param name: what the node is for; reports and requirements use this name
    :param module: the name of the module, such as ``ansible.builtin.lineinfile``
    :param arguments: its arguments
    :param when_triggered: run the module only if a node in `restart_on` changes, like a handler
    :param read_back: false: don't ask the module again after an apply; for arguments that report a change every time
    :param user: the user who runs the module
    :param effects: what the module changes, as in [command](#command)
    :param timeout: seconds after which statecfg stops the module

    In YAML::

        - ansible_module: keep-nginx
          module: ansible.builtin.dpkg_selections
          arguments: {name: nginx, selection: hold}
          effects: {packages: true}

    In Python::

        ansible_module("zone", module="ansible.builtin.debconf", arguments={"name": "tzdata"}, effects={})
    """


ansible_module.identity([])  # a node of this name in another playbook is a different one
ansible_module.needs(ansible_rules.needs)
ansible_module.validate(ansible_rules.check)
ansible_module.to_wire(ansible_rules.with_code)
ansible_module.implemented_by(ansible_runs)
