"""The command line: parse, do, show; the only part that ends the process."""
