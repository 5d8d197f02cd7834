"""The values that controller and host share: nodes, actions, node types, ops. Imports nothing of statecfg."""
