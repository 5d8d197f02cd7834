"""Programs and requests: commands, HTTP requests, waiting, assertions and generated values.

Imports `resources.services`, `resources.shared` and the rooms of `remote`.
"""
