"""Runtime defined entities: types, entities, behaviors, tasks and who may do what with them."""
