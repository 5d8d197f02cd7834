"""Runtime defined entities: types, entities, behaviors, tasks and access control."""
