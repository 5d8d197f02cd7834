"""Runs: jobs, the bundle, the exchange with each host, reports, saved plans. Imports what playbooks are made of,
`transport` and `store`.
"""
