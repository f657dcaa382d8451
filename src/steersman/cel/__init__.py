"""The Common Expression Language: compiling expressions, estimating what they cost, evaluating them.

`Environment` says what expressions may use. `compile_expression` reads and checks one; `Expression` tells its type, its
estimated cost and makes the `Program` that evaluates it. The package knows nothing of resources: variables with their
types, and what is known of their sizes, come from whoever compiles. It is slow to import, so import it where an
expression is first met.
"""
