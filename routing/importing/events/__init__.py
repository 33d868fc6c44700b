"""Extended Events of the broker → rows of ``observed_routing``; all is read by the names of fields."""
