"""The parts of the type generator: reading facts, naming, Python modules, tables."""
