"""The Common Expression Language: compiling expressions, estimating their costs, and evaluating them.

`Environment` defines what expressions may use. `compile_expression` parses and checks an expression. `Expression` has
its type and its estimated cost, and creates the `Program` that evaluates it. The package does not depend on API
resources: the caller supplies the variables with their types, and estimates of their sizes. The import is slow, so
import the package where the first expression is compiled.
"""
