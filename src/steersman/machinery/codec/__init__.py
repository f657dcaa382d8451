"""Encoding and decoding of objects: JSON, YAML, protobuf, and plain dicts and lists."""
