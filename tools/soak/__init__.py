"""Random writes, and informers that follow them as client-go's do: `python -m tools.soak`."""
