package controller_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"steersman/examples/sites/api"
	"steersman/examples/sites/controller"
)

// cluster is a client of the cluster that all tests share, each in a namespace of its own.
var cluster client.WithWatch

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run starts the operator beside a cluster: that of $KUBECONFIG with USE_EXISTING_CLUSTER=true, or else one that envtest
// starts. It needs one in which Deployments get their pods.
func run(m *testing.M) (int, error) {
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"../config"}, ErrorIfCRDPathMissing: true}
	config, err := environment.Start()
	if err != nil {
		return 0, err
	}
	defer func() { _ = environment.Stop() }()
	scheme := runtime.NewScheme()
	_ = clientscheme.AddToScheme(scheme)
	_ = api.AddToScheme(scheme)
	if cluster, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	options := ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return 0, err
	}
	reconciler := &controller.SiteReconciler{Client: manager.GetClient()}
	if err := reconciler.SetupWithManager(manager); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	code := m.Run()
	cancel()
	return code, <-ended
}

// namespace makes one for a test, which goes with it.
func namespace(t *testing.T) string {
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := cluster.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Delete(context.Background(), made) })
	return made.Name
}

// create makes a Site.
func create(t *testing.T, namespace string, replicas int32) *api.Site {
	site := &api.Site{
		ObjectMeta: metav1.ObjectMeta{Name: "blog", Namespace: namespace},
		Spec:       api.SiteSpec{Image: "nginx:1.29", Replicas: replicas},
	}
	if err := cluster.Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	return site
}

// wait looks at an object of that name again and again, until it is as it should be.
func wait(t *testing.T, object client.Object, reached func() bool) {
	t.Helper()
	until := time.Now().Add(30 * time.Second)
	for {
		err := cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if err == nil && reached() {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("it did not come to be: %+v (%v)", object, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func ready(site *api.Site) func() bool {
	return func() bool {
		found := meta.FindStatusCondition(site.Status.Conditions, "Ready")
		return found != nil && found.Status == metav1.ConditionTrue && found.ObservedGeneration == site.Generation
	}
}

func TestASiteBecomesReadyWithItsPods(t *testing.T) {
	site := create(t, namespace(t), 3)
	wait(t, site, ready(site))
	if site.Status.ReadyReplicas != 3 {
		t.Fatalf("%d replicas are ready", site.Status.ReadyReplicas)
	}
	pods := &corev1.PodList{}
	labels := client.MatchingLabels{"example.com/site": "blog"}
	if err := cluster.List(t.Context(), pods, client.InNamespace(site.Namespace), labels); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || pod.Spec.NodeName == "" {
			t.Errorf("%s is %s on node %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
	}
}

func TestANewImageIsRolledOut(t *testing.T) {
	site := create(t, namespace(t), 2)
	wait(t, site, ready(site))
	before := site.DeepCopy()
	site.Spec.Image = "nginx:1.30"
	if err := cluster.Patch(t.Context(), site, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	wait(t, site, ready(site))
	deployment := &appsv1.Deployment{ObjectMeta: site.ObjectMeta}
	wait(t, deployment, func() bool { return deployment.Status.Replicas == 2 })
	if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "nginx:1.30" {
		t.Fatal(image)
	}
}

func TestWhatASiteOwnsGoesWithIt(t *testing.T) {
	site := create(t, namespace(t), 1)
	wait(t, site, ready(site))
	if err := cluster.Delete(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	for !apierrors.IsNotFound(cluster.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)) {
		if t.Context().Err() != nil {
			t.Fatal("the Deployment is still there")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestASiteWithoutAnImageIsRefused(t *testing.T) {
	site := &api.Site{ObjectMeta: metav1.ObjectMeta{Name: "blog", Namespace: namespace(t)}}
	if err := cluster.Create(t.Context(), site); !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
}
