"""One host in a run: its session and its report. May import the same packages as `run`."""
