"""Read Extended Events of Service Broker into rows of ``observed_routing``. Fields are identified by name."""
