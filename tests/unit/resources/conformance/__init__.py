"""Tests that all node types pass, generated from their cases."""
