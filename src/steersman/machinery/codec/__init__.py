"""Objects from and to what clients send and storage keeps: JSON, YAML, protobuf, plain values."""
