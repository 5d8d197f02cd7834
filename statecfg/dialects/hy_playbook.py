"""Load playbooks in Hy, whose plays are `defplay` forms."""

from __future__ import annotations

import os
import sys
import types

from statecfg.dialects import hy_source
from statecfg.dialects.modules import built_within, importing, module_name
from statecfg.playbook.plays import collected
from statecfg.playbook.services import Playbook, of_file
from statecfg.playbook.user_code import guarded


def load(path: str, root: str) -> Playbook:
    """Compile and run a playbook and return its definitions.

    :param path: absolute path of the `.hy` file
    :param root: directory of the project
    :raises InvalidInput: the playbook can't be compiled, or fails
    """
    module = types.ModuleType(module_name(path))
    module.__file__ = path
    hy_source.install(root)
    with importing(root, os.path.dirname(path)), collected() as definitions, guarded(f"loading {path}", file=path):
        sys.modules[module.__name__] = module
        hy_source.execute(module, path)
    return built_within(of_file(path, definitions), root, os.path.dirname(path))
