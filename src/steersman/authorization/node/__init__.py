"""Authorization of nodes, by a graph of pods and the objects they refer to, kept current by watch events."""
