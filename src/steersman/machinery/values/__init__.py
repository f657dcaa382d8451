"""Values that objects hold as text: quantities, timestamps, lengths of time."""
