"""What nodes may do: that of the pods that are bound to them, found by a graph which events keep up."""
