"""Errors as clients see them: Statuses, field errors, and values printed as Go prints them."""
