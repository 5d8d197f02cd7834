"""The executor: the half of statecfg that runs on the host, stdlib only, Python 3.8 or newer.

The rooms below it are, from the lowest: `graph`, `machine`, `wire`, `ledger`, `hooks`, `run`, `units`, `facts`.
`session` and `bootstrap` are above them. Imports nothing outside of these rooms.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional

OLDEST = (3, 8)
"""The oldest Python that the executor and node types must run on."""

# Public modules under the names that they had until 0.3. Node types of users import them, here and on hosts.
MOVED = {
    "memory": "machine.memory",
    "model": "graph.model",
    "nodetype": "graph.nodetype",
    "ops": "graph.ops",
    "values": "graph.values",
    "world": "machine.world",
}


class _Moved:
    """Imports a moved module under its former name, and warns once on the controller."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        package, _, module = name.rpartition(".")
        loader: Any = cls
        return ModuleSpec(name, loader) if package == __name__ and module in MOVED else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        new_name = "%s.%s" % (__name__, MOVED[spec.name.rpartition(".")[2]])
        if "__version__" in vars(sys.modules["statecfg"]):  # not on hosts, where no user would see it
            import warnings

            text = "%s is now %s. The former name will be removed in 1.0." % (spec.name, new_name)
            warnings.warn(text, FutureWarning, stacklevel=2)
        module = import_module(new_name)
        spec.loader_state = module.__spec__
        return module

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state  # importlib has set the spec of the former name


_finder: Any = _Moved
sys.meta_path.append(_finder)
