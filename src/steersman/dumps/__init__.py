"""Objects of clusters outside of any server: dumps that are read, imports, and recordings."""
