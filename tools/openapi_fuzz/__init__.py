"""Random requests out of the OpenAPI documents that a server publishes, made by schemathesis: none may be answered with
a 5xx, or with nothing.

    python -m tools.openapi_fuzz --start bench/serve --seconds 1800

schemathesis is in the dependency group `fuzz`. Each document has time by the number of its paths.
"""
