// An operator that makes one head for each cluster, as KubeRay does; both are ConfigMaps.
//
// It looks for heads in the cache of an informer. If that is behind, a change of the cluster leads to a second head, and
// workers connect to either: https://github.com/ray-project/kuberay/issues/715. With --fixed the name of the head follows from
// that of its cluster, so that the server refuses a second one: https://github.com/ray-project/kuberay/issues/3013.
package main

import (
	"context"
	"log"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

const namespace = "default"

type operator struct {
	client  kubernetes.Interface
	heads   corelisters.ConfigMapLister
	queue   workqueue.TypedRateLimitingInterface[string]
	isFixed bool
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	config.UserAgent = "heads/1.0"
	ctx := context.Background()
	client := kubernetes.NewForConfigOrDie(config)
	clusters, heads := following(ctx, client, "cluster"), following(ctx, client, "head")
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	add := func(cluster any) { queue.Add(cluster.(*corev1.ConfigMap).Name) }
	_, err = clusters.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, cluster any) { add(cluster) },
	})
	if err != nil {
		log.Fatal(err)
	}
	operator := operator{client, heads.Lister(), queue, slices.Contains(os.Args, "--fixed")}
	operator.run(ctx)
}

// following returns an informer of ConfigMaps with a label, whose cache is in sync.
func following(ctx context.Context, client kubernetes.Interface, label string) coreinformers.ConfigMapInformer {
	selected := informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = label })
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace), selected)
	found := factory.Core().V1().ConfigMaps()
	found.Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return found
}

func (o *operator) run(ctx context.Context) {
	for {
		cluster, isOver := o.queue.Get()
		if isOver {
			return
		}
		if err := o.reconcile(ctx, cluster); err != nil {
			log.Printf("%s: again after: %v", cluster, err)
			o.queue.AddRateLimited(cluster)
		} else {
			o.queue.Forget(cluster)
		}
		o.queue.Done(cluster)
	}
}

func (o *operator) reconcile(ctx context.Context, cluster string) error {
	label := labels.Set{"head": cluster}
	found, err := o.heads.ConfigMaps(namespace).List(label.AsSelector())
	if err != nil || len(found) > 0 {
		return err
	}
	head := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: cluster + "-head-", Labels: label}}
	if o.isFixed {
		head.GenerateName, head.Name = "", cluster+"-head"
	}
	_, err = o.client.CoreV1().ConfigMaps(namespace).Create(ctx, head, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
