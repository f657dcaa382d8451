"""Controllers of Services: Endpoints and EndpointSlices of their pods, and simulated load balancers."""
