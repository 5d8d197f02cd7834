"""What editors need: JSON Schemas of the files of a project. Imports `dialects` and below."""
