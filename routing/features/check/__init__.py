"""From a folder of exports and scripts to the answer: no configuration, no tables, no Java."""
