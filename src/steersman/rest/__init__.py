"""What a resource can do: one small Protocol per capability, the Strategy, and the declaration of a resource."""
