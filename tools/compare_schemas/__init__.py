"""Random schemas of custom resources, and values, judged by a reference API server and by this project's library.

    python -m tools.compare_schemas --reference CMD [--schemas 20] [--values 60] [--updates 20] [--declarations 200]
        [--seed 7]

CMD starts the server and prints one JSON line with its url, ca and token, as bench/serve does. Compared are: the causes
with which definitions are refused, the causes with which objects are refused at creation and at update (after the
schema became stricter), what becomes of those that are not (pruned, defaulted), and warnings about unknown fields.
"""
