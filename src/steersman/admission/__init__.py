"""The admission interface and the chain of admission plugins; the plugins are in `admission_plugins`."""
