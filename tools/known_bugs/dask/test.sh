# A Dask cluster with its default worker.
kubectl apply -f cluster.yaml
kubectl wait --for=create daskworkergroup/simple-default --timeout=15s
