"""The command line: parse, execute, show. Only this package ends the process."""
