"""The page that `report` and `check --html` write."""
