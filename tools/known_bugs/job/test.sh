# A job that gets a second pod once it has come to rest: the controller looks again one second after an event of its pods.
kubectl apply -f job.yaml
kubectl wait --for=jsonpath='{.status.active}'=1 job/many --timeout=10s
sleep 2
kubectl patch job many --type=merge -p '{"spec":{"parallelism":2}}'
kubectl wait --for=jsonpath='{.status.active}'=2 job/many --timeout=10s
