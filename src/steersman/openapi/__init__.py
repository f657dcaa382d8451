"""OpenAPI: the documents of what is served, made of the catalogue, and the paths that serve them."""
