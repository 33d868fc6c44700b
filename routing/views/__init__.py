"""Answer the questions of users about a configuration and its messages. Each folder answers one with rows."""
