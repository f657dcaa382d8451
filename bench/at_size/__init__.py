"""Costs of a server with a large cluster's objects and watchers; see __main__.py."""
