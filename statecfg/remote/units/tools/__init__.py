"""The tools that hooks of units call, such as `relation-get`. They run as separate programs."""
