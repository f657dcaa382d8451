"""The library: API servers of custom kinds, declared as annotated classes. Its public names are `steersman`'s."""
