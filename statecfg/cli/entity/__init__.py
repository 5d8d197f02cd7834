"""The verb `entity`: types, entities and their tasks."""
