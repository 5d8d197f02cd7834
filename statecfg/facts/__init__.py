"""Facts of hosts in definitions: their catalogue, the object that definitions read, and the project's own facts.

Imports `problems` and `remote`.
"""
