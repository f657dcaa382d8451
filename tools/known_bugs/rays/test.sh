# A Ray cluster of a head and a worker, for which no other pod is ever made.
made=$(mktemp)
trap 'rm $made' EXIT
kubectl get pods --watch --output name > $made &
kubectl apply -f cluster.yaml
kubectl wait --for=jsonpath='{.status.state}'=ready raycluster/rays --timeout=30s
test $(sort -u $made | wc -l) = 2
