"""Kinds as values: operations on objects that do not depend on their Python class.

A `Kind` is one kind in one version. All code above this floor (stores, handlers, field managers, discovery) is given
kinds and calls their methods; no code inspects the class of an object. `StructKind` is a kind whose objects are
Structs, `OpenKind` a kind whose objects are any JSON with metadata.
"""
