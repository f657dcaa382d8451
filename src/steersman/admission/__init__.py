"""The admission contract and the chain of plugins; the plugins themselves are in admission_plugins."""
