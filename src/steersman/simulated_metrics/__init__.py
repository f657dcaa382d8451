"""The metrics APIs of a simulated cluster: what its containers use, and values that users give."""
