"""Print the findings of lint."""
