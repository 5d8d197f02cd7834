"""The system as a whole: kernel, locale, time zone, alternatives, SELinux and reboots.

Imports `resources.files`, `resources.programs`, `resources.shared` and the rooms of `remote`.
"""
