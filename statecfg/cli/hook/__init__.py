"""`statecfg hook`: hook objects, their log and their registrations."""
