"""The page of a cluster: a front on loopback that serves it and passes its requests on with a kubeconfig's rights.

The front knows the API only, so it shows any API server.
"""
