"""Test definitions: plan playbooks on imagined hosts, in memory. Imports `run` and below.

`ImaginedHost` describes a host as data. The fixture `statecfg` of the pytest plugin (`plugin`) plans a playbook on it.
"""

from __future__ import annotations

from statecfg.testing.definitions import Definitions
from statecfg.testing.fact_sets import fact_set
from statecfg.testing.imagined import ImaginedHost
from statecfg.testing.plans import HostPlan, PlannedNode

__all__ = ["Definitions", "HostPlan", "ImaginedHost", "PlannedNode", "fact_set"]
