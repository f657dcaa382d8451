"""Stages of kwok: what happens to pods and nodes, how they look then, and when, as a file says it."""
