"""Large requests: how they are weighed, bounded, and worked on beside the event loop."""
