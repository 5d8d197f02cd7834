"""All output for people and programs. No other package of statecfg prints. Imports `entities` and lower rooms."""
