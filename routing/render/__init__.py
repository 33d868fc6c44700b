"""Write documents as text, and format numbers, times, durations and names."""
