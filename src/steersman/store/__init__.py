"""The generic registry store: a resource's capabilities implemented on storage, with a strategy's hooks around them."""
