"""Clusters that begin with the objects of a dump."""
