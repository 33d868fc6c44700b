"""Documents as text, and the one wording of numbers, times, durations and names."""
