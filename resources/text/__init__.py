"""Parts of text files: lines, blocks and keys of INI, JSON, TOML and YAML.

Imports `resources.shared` and the rooms of `remote`.
"""
