"""The built-in resources: one file each, GROUP/RESOURCE.py, holding one `Resource` declaration."""
