"""The versioned key-value contract, its implementations, and the watch cache on top.

`interface` is the contract; `memory` and `sqlite` implement it; `cacher` keeps one resource as it is served and tells
its watchers of every change.
"""
