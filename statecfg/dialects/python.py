"""Load playbooks in Python, whose plays are functions with the decorator `@play`."""

from __future__ import annotations

import os
import sys
import types

from statecfg.dialects.modules import built_within, importing, module_name
from statecfg.playbook.plays import collected
from statecfg.playbook.services import Playbook, of_file
from statecfg.playbook.user_code import guarded


def load(path: str, root: str) -> Playbook:
    """Run a playbook and return its definitions.

    :param path: absolute path of the `.py` file
    :param root: directory of the project
    :raises InvalidInput: the playbook fails
    """
    module = types.ModuleType(module_name(path))
    module.__file__ = path
    with importing(root, os.path.dirname(path)), collected() as definitions, guarded(f"loading {path}", file=path):
        with open(path, "rb") as stream:
            code = compile(stream.read(), path, "exec", dont_inherit=True)
        sys.modules[module.__name__] = module
        exec(code, module.__dict__)  # noqa: S102  # a playbook is a program
    return built_within(of_file(path, definitions), root, os.path.dirname(path))
