"""Columns, rows and frames in declared types: how tables are read, joined and cached."""
