"""What is most likely off, by the groups of episodes that contradict the tables."""
