package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	listersapps "k8s.io/client-go/listers/apps/v1"
	listerscore "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	managercache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// drive makes deployments, scales them, and deletes some; the replicas of those that are left, by their names.
func (w *world) drive(ctx context.Context, namespace string, seed int64) (map[string]int32, error) {
	deployments := w.plain.AppsV1().Deployments(namespace)
	left := map[string]int32{}
	for number := range 8 {
		made := deployment(0)
		made.Name = fmt.Sprintf("d-%d", number)
		if err := w.persist(ctx, func() error {
			_, err := deployments.Create(ctx, made, metav1.CreateOptions{})
			return err
		}); err != nil {
			return nil, err
		}
		left[made.Name] = 0
	}
	r := rand.New(rand.NewSource(seed))
	for range 40 {
		name := slices.Sorted(maps.Keys(left))[r.Intn(len(left))]
		if len(left) > 5 && r.Intn(8) == 0 {
			if err := w.persist(ctx, func() error {
				return deployments.Delete(ctx, name, metav1.DeleteOptions{})
			}); err != nil {
				return nil, err
			}
			delete(left, name)
			continue
		}
		left[name] = int32(r.Intn(100))
		patch := encode(map[string]any{"spec": map[string]any{"replicas": left[name]}})
		if err := w.persist(ctx, func() error {
			_, err := deployments.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "scale")
			return err
		}); err != nil {
			return nil, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return left, nil
}

// controller keeps a ConfigMap beside every Deployment, which says how many replicas it has.
type controller struct {
	world       *world
	namespace   string
	queue       workqueue.TypedRateLimitingInterface[string]
	deployments listersapps.DeploymentLister
	configMaps  listerscore.ConfigMapLister
}

func (c *controller) sync(ctx context.Context, name string) error {
	configMaps := c.world.typed.CoreV1().ConfigMaps(c.namespace)
	deployment, err := c.deployments.Deployments(c.namespace).Get(name)
	if apierrors.IsNotFound(err) {
		err = configMaps.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	replicas := fmt.Sprint(*deployment.Spec.Replicas)
	found, err := c.configMaps.ConfigMaps(c.namespace).Get(name)
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, configMap(name, map[string]string{"replicas": replicas}), metav1.CreateOptions{})
		return err
	}
	if err != nil || found.Data["replicas"] == replicas {
		return err
	}
	changed := found.DeepCopy()
	changed.Data["replicas"] = replicas
	_, err = configMaps.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}

func (c *controller) work(ctx context.Context) {
	for {
		name, over := c.queue.Get()
		if over {
			return
		}
		if err := c.sync(ctx, name); err != nil {
			c.queue.AddRateLimited(name)
			c.world.report.count("syncs tried again", 1)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}

func controllerGetsThere(ctx context.Context, w *world) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	namespace := w.checks + "-controller"
	if err := w.persist(ctx, func() error { return w.makeNamespace(ctx, namespace) }); err != nil {
		return "", err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(w.typed, 0, informers.WithNamespace(namespace))
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, time.Second)
	c := &controller{
		world: w, namespace: namespace, queue: workqueue.NewTypedRateLimitingQueue(limiter),
		deployments: factory.Apps().V1().Deployments().Lister(), configMaps: factory.Core().V1().ConfigMaps().Lister(),
	}
	defer c.queue.ShutDown()
	enqueue := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			c.queue.Add(name.Name)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }, DeleteFunc: enqueue,
	}
	for _, each := range []cache.SharedIndexInformer{
		factory.Apps().V1().Deployments().Informer(), factory.Core().V1().ConfigMaps().Informer(),
	} {
		if _, err := each.AddEventHandler(handler); err != nil {
			return "", err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for range 2 {
		go c.work(ctx)
	}
	wanted, err := w.drive(ctx, namespace, 1)
	if err != nil {
		return "", err
	}
	err = eventually(ctx, 100*time.Millisecond, func() (bool, string, error) {
		list, err := w.plain.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
		if w.lost(err) {
			return false, err.Error(), nil
		}
		if err != nil {
			return false, "", err
		}
		found := map[string]int32{}
		for _, each := range list.Items {
			if replicas, err := strconv.Atoi(each.Data["replicas"]); err == nil {
				found[each.Name] = int32(replicas)
			}
		}
		return maps.Equal(found, wanted), fmt.Sprintf("%v instead of %v", found, wanted), nil
	})
	return fmt.Sprintf("%d objects", len(wanted)), err
}

const finalizer = "example.com/tidy"

// reconciler keeps a Secret for every Deployment, reports its replicas in its status, and tidies up with a finalizer.
type reconciler struct {
	client.Client
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	deployment := &appsv1.Deployment{}
	if err := r.Get(ctx, request.NamespacedName, deployment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}
	if !deployment.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(r.Delete(ctx, secret)); err != nil {
			return ctrl.Result{}, err
		}
		before := deployment.DeepCopy()
		controllerutil.RemoveFinalizer(deployment, finalizer)
		return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, deployment, client.MergeFrom(before)))
	}
	if controllerutil.AddFinalizer(deployment, finalizer) {
		return ctrl.Result{}, r.Update(ctx, deployment)
	}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		secret.Data = map[string][]byte{"replicas": []byte(fmt.Sprint(*deployment.Spec.Replicas))}
		return controllerutil.SetControllerReference(deployment, secret, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	if deployment.Status.Replicas == *deployment.Spec.Replicas {
		return ctrl.Result{}, nil
	}
	before := deployment.DeepCopy()
	deployment.Status.Replicas = *deployment.Spec.Replicas
	return ctrl.Result{}, r.Status().Patch(ctx, deployment, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func managerGetsThere(ctx context.Context, w *world) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	namespace := w.checks + "-manager"
	if err := w.persist(ctx, func() error { return w.makeNamespace(ctx, namespace) }); err != nil {
		return "", err
	}
	manager, err := ctrl.NewManager(w.config, ctrl.Options{
		Cache:          managercache.Options{DefaultNamespaces: map[string]managercache.Config{namespace: {}}},
		LeaderElection: true, LeaderElectionID: "manager", LeaderElectionNamespace: namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return "", err
	}
	if err := ctrl.NewControllerManagedBy(manager).Named(namespace).For(&appsv1.Deployment{}).Owns(&corev1.Secret{}).
		Complete(&reconciler{manager.GetClient()}); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	wanted, err := w.drive(ctx, namespace, 2)
	if err != nil {
		return "", err
	}
	reader := manager.GetAPIReader()
	if err := w.persist(ctx, func() error {
		return manager.GetClient().DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(namespace))
	}); err != nil {
		return "", err
	}
	err = eventually(ctx, 100*time.Millisecond, func() (bool, string, error) {
		deployments, secrets := &appsv1.DeploymentList{}, &corev1.SecretList{}
		everything := &client.ListOptions{Namespace: namespace, LabelSelector: labels.Everything()}
		for _, each := range []client.ObjectList{deployments, secrets} {
			if err := reader.List(ctx, each, everything); w.lost(err) {
				return false, err.Error(), nil
			} else if err != nil {
				return false, "", err
			}
		}
		statuses, kept := map[string]int32{}, map[string]int32{}
		for _, each := range deployments.Items {
			statuses[each.Name] = each.Status.Replicas
		}
		for _, each := range secrets.Items {
			if replicas, err := strconv.Atoi(string(each.Data["replicas"])); err == nil {
				kept[each.Name] = int32(replicas)
			}
		}
		missing := fmt.Sprintf("statuses %v and secrets %v instead of %v", statuses, kept, wanted)
		return maps.Equal(statuses, wanted) && maps.Equal(kept, wanted), missing, nil
	})
	if err != nil {
		return "", err
	}
	cancel()
	select {
	case err = <-ended:
	case <-time.After(patience):
		err = fmt.Errorf("the manager did not end within %s", patience)
	}
	return fmt.Sprintf("%d objects", len(wanted)), err
}
