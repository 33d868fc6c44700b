"""What a table is made of: columns, rows and frames in declared types, and how they are read, joined and kept."""
