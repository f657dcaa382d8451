"""Authentication by JSON Web Tokens of other issuers (OpenID Connect), as AuthenticationConfigurations describe
them.
"""
