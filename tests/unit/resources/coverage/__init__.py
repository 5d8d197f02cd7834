"""How the tasks of ten real roles are written in statecfg, as data, and the page docs/coverage.md that shows it."""
