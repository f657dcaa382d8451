# A certificate that is issued.
kubectl apply -f certificate.yaml
kubectl wait --for=condition=Ready certificate/web --timeout=60s
