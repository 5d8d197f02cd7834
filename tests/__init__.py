"""Tests of statecfg; a package, so that `tests.hosts` has one name everywhere."""
