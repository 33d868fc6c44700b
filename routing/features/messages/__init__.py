"""The messages of the outputs, listed by what is asked: which are delayed, where, since when, and their ids."""
