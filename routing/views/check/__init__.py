"""Check a folder of exports and scripts: no configuration, no tables, no Java."""
