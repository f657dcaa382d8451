# A queue whose volume grows.
claim=pvc/persistence-queue-server-0
kubectl apply -f cluster.yaml
kubectl wait --for=create $claim --timeout=30s
kubectl wait --for=create pod/queue-server-0 --timeout=30s
kubectl wait --for=jsonpath='{.status.phase}'=Bound $claim --timeout=30s
kubectl patch rabbitmqcluster queue --type=merge -p '{"spec":{"persistence":{"storage":"15Gi"}}}'
kubectl wait --for=jsonpath='{.spec.resources.requests.storage}'=15Gi $claim --timeout=30s
kubectl wait --for=create statefulset/queue-server --timeout=30s
kubectl wait --for=jsonpath='{.spec.volumeClaimTemplates[0].spec.resources.requests.storage}'=15Gi statefulset/queue-server --timeout=30s
kubectl wait --for=jsonpath='{.status.replicas}'=1 statefulset/queue-server --timeout=30s
