"""In which versions the objects of built-in kinds are stored, where servers of several releases are on one store."""
