"""Structural schemas. Unless a test states otherwise, the texts of errors are those of kube-apiserver 1.36.3 for the
same requests.
"""
