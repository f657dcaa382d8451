"""OpenAPI documents of the served resources, built from the catalogue, and the paths that serve them."""
