"""Protobuf forms of objects, which clients of the built-in kinds mostly use."""
