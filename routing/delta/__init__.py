"""Delta tables: locations, commits, versions, new rows and locks, and how a run commits exactly once."""
