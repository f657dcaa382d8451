"""Explanations of the state of objects, from what any API server or a dump of one shows."""
