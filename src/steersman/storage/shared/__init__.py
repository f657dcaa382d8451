"""One storage for several processes: its owner serves the contract over Unix sockets, and tells all of each event."""
