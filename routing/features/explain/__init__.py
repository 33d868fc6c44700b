"""The rooms of `explain`: what is asked, how it was judged, the path as lines, and the lines as sentences."""
