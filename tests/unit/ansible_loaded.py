"""Imports Ansible before the tests run: its import starts ldconfig to find the C library, and unit tests can't."""

from statecfg.playbook import ansible_modules

ansible_modules.loaders()
