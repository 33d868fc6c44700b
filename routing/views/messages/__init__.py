"""List the messages of the outputs: the delayed ones, with their place, age and ids."""
