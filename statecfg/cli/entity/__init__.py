"""`statecfg entity`: types, entities and their tasks."""
