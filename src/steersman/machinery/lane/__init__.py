"""The threads beside the event loop: whose turn it is in them, and how code in them gives way."""
