"""The built-in admission plugins, one a file."""
