"""Encryption at rest: values are encrypted by the providers in a configuration file, in kube-apiserver's formats for
etcd.
"""
