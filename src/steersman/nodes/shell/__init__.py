"""A small simulated POSIX shell with its programs, for commands in simulated containers."""
