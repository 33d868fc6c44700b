"""Example estates for `sbroute demo`: those of the documents, and a generated day."""
