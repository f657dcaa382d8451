"""Services and Endpoints."""
