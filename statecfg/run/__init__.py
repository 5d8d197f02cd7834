"""Runs: jobs, the bundle, host sessions, reports and saved plans. Imports the packages that playbooks are made of,
`transport` and `store`.
"""
