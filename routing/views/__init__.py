"""The questions that users ask of a configuration and its messages; a folder answers each with rows."""
