"""`python -m statecfg` is the command `statecfg`."""

from __future__ import annotations

from statecfg.cli.main import run

if __name__ == "__main__":
    run()
