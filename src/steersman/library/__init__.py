"""The library: API servers of one's own kinds, declared as annotated classes. Its public names are `steersman`'s."""
