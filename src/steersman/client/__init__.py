"""A client of the Kubernetes API: requests, informers, work queues, events, leader election (client-go's job)."""
