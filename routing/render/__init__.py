"""A document as text or as part of a page, and the one wording of numbers, times, durations and names."""
