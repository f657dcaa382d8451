// A program with the Job controller of kube-controller-manager and nothing else.
package main

import (
	"context"
	"os"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/controller/job"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	shared := informers.NewSharedInformerFactory(client, 0)
	controller := job.NewController(shared.Core().V1().Pods(), shared.Batch().V1().Jobs(), client)
	ctx := context.Background()
	shared.Start(ctx.Done())
	controller.Run(ctx, 2)
}
