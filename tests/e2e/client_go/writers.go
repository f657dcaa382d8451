package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycoordination "k8s.io/client-go/applyconfigurations/coordination/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	applyrbac "k8s.io/client-go/applyconfigurations/rbac/v1"
)

const (
	writers = 5
	names   = 8
	pause   = 8 * time.Millisecond
)

var colors = []string{"red", "green", "blue"}

type object interface {
	runtime.Object
	metav1.Object
}

// typedClient is what client-go generates for every resource, of which A is the apply configuration.
type typedClient[T object, A any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
	Apply(context.Context, A, metav1.ApplyOptions) (T, error)
}

// kind is a resource that is written to: `make` makes an object anew, `touch` changes what may be changed of one.
type kind[T object, A any] struct {
	resource schema.GroupVersionResource
	client   func(namespace string) typedClient[T, A]
	make     func(namespace string, r *rand.Rand) T
	touch    func(obj T, r *rand.Rand)
	apply    func(name, namespace string, r *rand.Rand) A
}

// writable is a kind whatever its type.
type writable interface {
	// write does something at random to the object; what it was.
	write(ctx context.Context, w *world, r *rand.Rand, namespace, name string) (string, error)
}

func (k kind[T, A]) write(
	ctx context.Context, w *world, r *rand.Rand, namespace, name string,
) (string, error) {
	client := k.client(namespace)
	manager := []string{"one", "two"}[r.Intn(2)]
	labels := map[string]any{"metadata": map[string]any{"labels": map[string]any{"color": color(r)}}}
	switch at := r.Intn(100); {
	case at < 25:
		obj := k.make(namespace, r)
		obj.SetName(name)
		obj.SetLabels(map[string]string{"color": color(r)})
		_, err := client.Create(ctx, obj, metav1.CreateOptions{FieldManager: manager})
		return "create", err
	case at < 45:
		obj, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "get", err
		}
		k.touch(obj, r)
		if r.Intn(10) == 0 {
			obj.SetResourceVersion("1")
		}
		_, err = client.Update(ctx, obj, metav1.UpdateOptions{FieldManager: manager})
		return "update", err
	case at < 60:
		_, err := client.Apply(ctx, k.apply(name, namespace, r), metav1.ApplyOptions{FieldManager: manager, Force: true})
		return "apply", err
	case at < 66:
		sort := []types.PatchType{types.MergePatchType, types.StrategicMergePatchType}[r.Intn(2)]
		_, err := client.Patch(ctx, name, sort, encode(labels), metav1.PatchOptions{FieldManager: manager})
		return "patch", err
	case at < 70:
		operations := []map[string]any{{"op": "add", "path": "/metadata/labels", "value": map[string]any{"color": color(r)}}}
		_, err := client.Patch(ctx, name, types.JSONPatchType, encode(operations), metav1.PatchOptions{})
		return "JSON patch", err
	case at < 74:
		_, err := w.metadata.Resource(k.resource).Namespace(namespace).Patch(
			ctx, name, types.MergePatchType, encode(labels), metav1.PatchOptions{})
		return "patch of metadata", err
	case at < 82:
		return "apply without types", k.applyUntyped(ctx, w, r, namespace, name, manager)
	case at < 98:
		options := metav1.DeleteOptions{}
		if obj, err := client.Get(ctx, name, metav1.GetOptions{}); err == nil && r.Intn(2) == 0 {
			uid, version := obj.GetUID(), obj.GetResourceVersion()
			options.Preconditions = &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
		}
		return "delete", client.Delete(ctx, name, options)
	default:
		selector := metav1.ListOptions{LabelSelector: "color=" + color(r)}
		several := w.dynamic.Resource(k.resource).Namespace(namespace)
		return "deletecollection", several.DeleteCollection(ctx, metav1.DeleteOptions{}, selector)
	}
}

func (k kind[T, A]) applyUntyped(
	ctx context.Context, w *world, r *rand.Rand, namespace, name, manager string,
) error {
	var content map[string]any
	if err := json.Unmarshal(encode(k.apply(name, namespace, r)), &content); err != nil {
		return err
	}
	obj := &unstructured.Unstructured{Object: content}
	_, err := w.dynamic.Resource(k.resource).Namespace(namespace).Apply(
		ctx, name, obj, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

func color(r *rand.Rand) string { return colors[r.Intn(len(colors))] }

func colored(r *rand.Rand) map[string]string { return map[string]string{"color": color(r)} }

func digits(r *rand.Rand) string { return fmt.Sprint(r.Intn(1000)) }

func (w *world) kinds() []writable {
	return []writable{
		kind[*corev1.ConfigMap, *applycore.ConfigMapApplyConfiguration]{
			resource: followed[0],
			client: func(namespace string) typedClient[*corev1.ConfigMap, *applycore.ConfigMapApplyConfiguration] {
				return w.typed.CoreV1().ConfigMaps(namespace)
			},
			make: func(_ string, r *rand.Rand) *corev1.ConfigMap {
				return &corev1.ConfigMap{
					Data: map[string]string{digits(r): digits(r)}, BinaryData: map[string][]byte{"binary": {0, 255, byte(r.Intn(256))}},
				}
			},
			touch: func(obj *corev1.ConfigMap, r *rand.Rand) { obj.Data = map[string]string{digits(r): "é\n" + digits(r)} },
			apply: func(name, namespace string, r *rand.Rand) *applycore.ConfigMapApplyConfiguration {
				return applycore.ConfigMap(name, namespace).WithLabels(colored(r)).WithData(map[string]string{digits(r): digits(r)})
			},
		},
		kind[*corev1.Secret, *applycore.SecretApplyConfiguration]{
			resource: followed[1],
			client: func(namespace string) typedClient[*corev1.Secret, *applycore.SecretApplyConfiguration] {
				return w.typed.CoreV1().Secrets(namespace)
			},
			make: func(_ string, r *rand.Rand) *corev1.Secret {
				return &corev1.Secret{
					Type: corev1.SecretType("example.com/" + color(r)), StringData: map[string]string{"key": digits(r)},
				}
			},
			touch: func(obj *corev1.Secret, r *rand.Rand) { obj.Data = map[string][]byte{"key": []byte(digits(r))} },
			apply: func(name, namespace string, r *rand.Rand) *applycore.SecretApplyConfiguration {
				return applycore.Secret(name, namespace).WithLabels(colored(r)).
					WithData(map[string][]byte{"applied": []byte(digits(r))})
			},
		},
		kind[*corev1.Pod, *applycore.PodApplyConfiguration]{
			resource: followed[2],
			client: func(namespace string) typedClient[*corev1.Pod, *applycore.PodApplyConfiguration] {
				return w.typed.CoreV1().Pods(namespace)
			},
			make: func(_ string, r *rand.Rand) *corev1.Pod {
				pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image:" + digits(r)}}}}
				pod.Spec.TerminationGracePeriodSeconds = new(int64)
				if r.Intn(3) == 0 {
					pod.Spec.NodeName = color(r)
				}
				return pod
			},
			touch: func(obj *corev1.Pod, r *rand.Rand) { obj.Spec.Containers[0].Image = "image:" + digits(r) },
			apply: func(name, namespace string, r *rand.Rand) *applycore.PodApplyConfiguration {
				return applycore.Pod(name, namespace).WithLabels(colored(r)).WithSpec(applycore.PodSpec().WithContainers(
					applycore.Container().WithName("main").WithImage("image:" + digits(r))))
			},
		},
		kind[*corev1.Service, *applycore.ServiceApplyConfiguration]{
			resource: followed[3],
			client: func(namespace string) typedClient[*corev1.Service, *applycore.ServiceApplyConfiguration] {
				return w.typed.CoreV1().Services(namespace)
			},
			make: func(_ string, r *rand.Rand) *corev1.Service {
				return &corev1.Service{Spec: corev1.ServiceSpec{
					Selector: colored(r), Ports: []corev1.ServicePort{{Name: "main", Port: int32(1 + r.Intn(1000))}},
				}}
			},
			touch: func(obj *corev1.Service, r *rand.Rand) { obj.Spec.Selector = colored(r) },
			apply: func(name, namespace string, r *rand.Rand) *applycore.ServiceApplyConfiguration {
				port := int32(2000 + r.Intn(2))
				return applycore.Service(name, namespace).WithLabels(colored(r)).WithSpec(applycore.ServiceSpec().
					WithPorts(applycore.ServicePort().WithName(fmt.Sprint("applied-", port)).WithPort(port)))
			},
		},
		kind[*corev1.Event, *applycore.EventApplyConfiguration]{
			resource: followed[4],
			client: func(namespace string) typedClient[*corev1.Event, *applycore.EventApplyConfiguration] {
				return w.typed.CoreV1().Events(namespace)
			},
			make: func(namespace string, r *rand.Rand) *corev1.Event {
				about := corev1.ObjectReference{Namespace: namespace, Name: "any"}
				return &corev1.Event{
					InvolvedObject: about, Reason: color(r), Type: corev1.EventTypeNormal, FirstTimestamp: metav1.Now(),
				}
			},
			touch: func(obj *corev1.Event, r *rand.Rand) { obj.Count, obj.Message = int32(r.Intn(9)), digits(r) },
			apply: func(name, namespace string, r *rand.Rand) *applycore.EventApplyConfiguration {
				return applycore.Event(name, namespace).WithLabels(colored(r)).WithMessage(digits(r)).
					WithInvolvedObject(applycore.ObjectReference().WithNamespace(namespace))
			},
		},
		kind[*appsv1.Deployment, *applyapps.DeploymentApplyConfiguration]{
			resource: followed[7],
			client: func(namespace string) typedClient[*appsv1.Deployment, *applyapps.DeploymentApplyConfiguration] {
				return w.typed.AppsV1().Deployments(namespace)
			},
			make: func(_ string, r *rand.Rand) *appsv1.Deployment { return deployment(int32(r.Intn(5))) },
			touch: func(obj *appsv1.Deployment, r *rand.Rand) {
				obj.Spec.Template.Spec.Containers[0].Image = "image:" + digits(r)
			},
			apply: func(name, namespace string, r *rand.Rand) *applyapps.DeploymentApplyConfiguration {
				labels := map[string]string{"app": "any"}
				template := applycore.PodTemplateSpec().WithLabels(labels).WithSpec(applycore.PodSpec().WithContainers(
					applycore.Container().WithName("main").WithImage("image:" + digits(r)).
						WithEnv(applycore.EnvVar().WithName("A" + digits(r)).WithValue(digits(r)))))
				return applyapps.Deployment(name, namespace).WithLabels(colored(r)).WithSpec(applyapps.DeploymentSpec().
					WithSelector(applymeta.LabelSelector().WithMatchLabels(labels)).WithTemplate(template))
			},
		},
		kind[*coordinationv1.Lease, *applycoordination.LeaseApplyConfiguration]{
			resource: followed[8],
			client: func(namespace string) typedClient[*coordinationv1.Lease, *applycoordination.LeaseApplyConfiguration] {
				return w.typed.CoordinationV1().Leases(namespace)
			},
			make: func(string, *rand.Rand) *coordinationv1.Lease {
				now := metav1.NowMicro()
				return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{AcquireTime: &now}}
			},
			touch: func(obj *coordinationv1.Lease, r *rand.Rand) {
				now, holder := metav1.NowMicro(), color(r)
				obj.Spec.RenewTime, obj.Spec.HolderIdentity = &now, &holder
			},
			apply: func(name, namespace string, r *rand.Rand) *applycoordination.LeaseApplyConfiguration {
				return applycoordination.Lease(name, namespace).WithLabels(colored(r)).
					WithSpec(applycoordination.LeaseSpec().WithLeaseDurationSeconds(int32(1 + r.Intn(60))))
			},
		},
		kind[*rbacv1.Role, *applyrbac.RoleApplyConfiguration]{
			resource: followed[9],
			client: func(namespace string) typedClient[*rbacv1.Role, *applyrbac.RoleApplyConfiguration] {
				return w.typed.RbacV1().Roles(namespace)
			},
			make: func(string, *rand.Rand) *rbacv1.Role { return &rbacv1.Role{} },
			touch: func(obj *rbacv1.Role, r *rand.Rand) {
				obj.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{color(r)}}}
			},
			apply: func(name, namespace string, r *rand.Rand) *applyrbac.RoleApplyConfiguration {
				return applyrbac.Role(name, namespace).WithLabels(colored(r)).WithRules(
					applyrbac.PolicyRule().WithVerbs("list").WithAPIGroups("apps").WithResources(color(r)))
			},
		},
	}
}

func deployment(replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "any"}
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: &replicas,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		},
	}}
}

// writeAtRandom writes for some seconds. An answer that nobody's write explains is an error.
func (w *world) writeAtRandom(ctx context.Context, seconds float64, seed int64) error {
	kinds := w.kinds()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	var group sync.WaitGroup
	var once sync.Once
	var unexplained error
	for number := range writers {
		group.Go(func() {
			r := rand.New(rand.NewSource(seed*100 + int64(number)))
			for ctx.Err() == nil && time.Now().Before(until) {
				namespace, name := w.namespaces[r.Intn(len(w.namespaces))], fmt.Sprintf("w-%d", r.Intn(names))
				at := r.Intn(len(kinds))
				verb, err := kinds[at].write(ctx, w, r, namespace, name)
				switch {
				case err == nil:
					w.report.count(verb, 1)
				case w.lost(err):
					w.report.count("requests lost", 1)
					time.Sleep(100 * time.Millisecond)
				case apierrors.IsConflict(err):
					w.report.count("conflicts", 1)
				case apierrors.IsUnsupportedMediaType(err):
					// With CBOR preferred, a client without types sends JSON from then on, but applies go on as they began.
					w.report.count("refused as CBOR", 1)
				case apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
					w.report.count("not there, or there already", 1)
				default:
					once.Do(func() { unexplained = fmt.Errorf("%s of %T %s/%s: %w", verb, kinds[at], namespace, name, err) })
					cancel()
				}
				time.Sleep(pause)
			}
		})
	}
	group.Wait()
	return unexplained
}
