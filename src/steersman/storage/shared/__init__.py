"""One storage for several processes. The owner serves the contract over Unix sockets and sends each event to all of
them.
"""
