"""Hook objects in the store: their configuration, the queue of their calls, and the log of the results."""
