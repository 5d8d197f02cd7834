"""Everything that is shown to people and programs; nothing else in statecfg prints."""
