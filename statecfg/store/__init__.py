"""The controller's database: hosts, hook objects, their events, reconciled objects and runs."""
