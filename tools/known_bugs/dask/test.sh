# A Dask cluster with its default workers.
kubectl apply -f cluster.yaml
kubectl wait --for=create daskworkergroup/simple-default --timeout=15s
