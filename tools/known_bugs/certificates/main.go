// A program with cert-manager's controllers of certificates, and its issuer that lets certificates sign themselves.
package main

import (
	"context"
	"os"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/metrics"
	"k8s.io/utils/clock"
)

func main() {
	ctx := context.Background()
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         os.Getenv("KUBECONFIG"),
		KubernetesAPIQPS:   100,
		KubernetesAPIBurst: 100,
		Clock:              clock.RealClock{},
		Metrics:            metrics.New(logs.Log, clock.RealClock{}),
	})
	if err != nil {
		panic(err)
	}
	var all []controller.Interface
	for _, construct := range controller.Known() {
		each, err := construct(factory)
		if err != nil {
			panic(err)
		}
		all = append(all, each)
	}
	shared, err := factory.Build()
	if err != nil {
		panic(err)
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	ended := make(chan error)
	for _, each := range all {
		go func(each controller.Interface) { ended <- each.Run(2, ctx.Done()) }(each)
	}
	panic(<-ended)
}
