"""The versioned key-value storage contract, its implementations, and the watch cache.

`interface` is the contract; `memory`, `sqlite`, `etcd` and `shared` implement it. `cache` keeps a resource in the
served form and sends every change to its watchers.
"""
