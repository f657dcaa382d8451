"""Values that objects hold as text: quantities, timestamps, durations."""
