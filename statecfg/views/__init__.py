"""All output for people and programs. No other package of statecfg prints."""
