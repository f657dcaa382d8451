"""Objects as protobuf, as clients of the built-in kinds mostly speak."""
