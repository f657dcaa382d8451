"""The built-in admission plugins; each is a file or a folder."""
