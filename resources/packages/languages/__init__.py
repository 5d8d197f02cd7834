"""Packages of programming languages: Python, Ruby and Node.js."""
