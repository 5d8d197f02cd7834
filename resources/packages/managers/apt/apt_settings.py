"""How statecfg runs apt: its environment, its lock, and where its lists are."""

from __future__ import annotations

LISTS = "/var/lib/apt/lists"
TIMEOUT = 1800.0
LOCK = ("-o", "DPkg::Lock::Timeout=300")  # seconds to wait until another apt ends
QUIET = {"DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none", "NEEDRESTART_MODE": "l"}
