"""The built-in resources: one file each, GROUP/RESOURCE.py, with one `Resource` declaration."""
