"""Files, directories, links and their attributes, and archives.

Imports `resources.shared` and the rooms of `remote`.
"""
