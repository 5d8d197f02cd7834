"""Finds node types: which module defines each of them. Hosts don't get it: the controller names the modules."""
