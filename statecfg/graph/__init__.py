"""The language of graphs: pure values, and their validation. Imports `problems`, `resources` and `remote`.

The words of the Borg state configuration document, and the module that implements each:

| word | here | module |
| --- | --- | --- |
| node, name, requirements | `Node`, `provides`, `requires` | `nodes`; on hosts `HostNode` in `remote.graph.model` |
| graph, `merge-graphs` | `Graph`, `merge_graphs` | `graph`, `merging` |
| references to many nodes | `expand` | `references`, `globs`, `recording` |
| topological layers | `layers` | `layers`, `cycles` |
| `node-type` | `node_type`, `NodeType` | `remote.graph.nodetype` |
| `:arguments`, `:required-attrs`, `:optional-attrs` | `Schema`, `TypedSchema` | `remote.graph.nodetype`, `schema` |
| calling a node type | `declare` | `declare` |
| `make-validators` | `add_validators`, `make_validators` | `validators`, `remote.graph.borg` |
| types of attributes | annotations | `types`, `remote.graph.values` |
| `to-wire`, serializing | `compile_graph` | `playbook.compile` |
| `from-wire`, deserializing | `from_wire` | `remote.session` |
| `check-node`, `actions`, `shutdown-first` | `check`, `ActionSpec` | `remote.run.planning`, `remote.graph.model` |
| `defop`, `:op`, `:fn` | `op`, `Action` | `remote.graph.ops`, `remote.graph.model` |
| executing actions | `Execution` | `remote.run.execution` |
| the Hy forms | macros and their runtime | `dialects/hy.hy`, `remote.graph.borg` |
| two nodes for the same object | `identity` | `identity`, `contradictions` |
| finding node types by name | `REGISTRY` | `registry`, `remote.graph.nodetype` |
| values that must not be shown | `Secret`, `Composed` | `opaque`, `value` |
"""
