"""Kinds as values: what can be done to objects of a kind without knowing which one it is.

A `Kind` is one kind in one version. Everything above this floor (stores, handlers, field managers, discovery) takes
kinds and asks them; nothing is found out from the class of an object. `StructKind` is a kind whose objects are Structs,
`OpenKind` one whose objects are any JSON with metadata.
"""
