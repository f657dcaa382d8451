"""Priority and fairness: which requests are worked on at once, which wait and in which order, which are refused.

Follows k8s.io/apiserver `util/flowcontrol`. It knows no routes and no stores: what it judges and where objects are
counted is handed to it.
"""
