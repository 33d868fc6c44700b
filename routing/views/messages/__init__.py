"""List the messages of the outputs: which are delayed, where, since when, and their ids."""
