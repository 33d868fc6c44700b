"""Pictures of a report, for the page and for notebooks."""
