"""Delta tables: where they are, their commits and versions, new rows, locks; how a run commits exactly once."""
