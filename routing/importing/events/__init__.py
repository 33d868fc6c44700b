"""Read Extended Events of the broker into rows of ``observed_routing``; fields are known by their names."""
