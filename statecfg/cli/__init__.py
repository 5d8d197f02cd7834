"""The command line: parse, execute, show. Only this package ends the process. Imports every lower room."""
