"""The versioned key-value contract, its implementations, and the watch cache on top."""
