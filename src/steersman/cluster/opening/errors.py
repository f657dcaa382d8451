"""Error of a dump that a cluster cannot begin with."""


class CannotOpen(Exception):
    """The objects of a dump cannot be stored in the data folder, with a message for the user."""
