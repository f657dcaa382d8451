"""The generic registry store: it implements a resource's capabilities on storage, with a strategy's hooks."""
