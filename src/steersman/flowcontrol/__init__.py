"""Priority and fairness: which requests execute, which wait in which order, and which are refused.

Follows k8s.io/apiserver `util/flowcontrol`. Independent of routes and stores: requests and counts of objects are passed
in.
"""
