package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

var faultsResource = schema.GroupVersionResource{Group: "simulation.steersman.dev", Version: "v1alpha1", Resource: "faults"}

const (
	victim = "victim/1"
	home   = "default"
)

// faulty makes Faults as one client and meets them as others.
type faulty struct {
	config *rest.Config
	faults dynamic.ResourceInterface
	admin  *kubernetes.Clientset
}

// client returns a client with a connection of its own, which Faults can tell by its user agent.
func (f *faulty) client() *kubernetes.Clientset {
	config := rest.CopyConfig(f.config)
	config.UserAgent = victim
	config.Dial = (&net.Dialer{}).DialContext // a transport of its own
	return kubernetes.NewForConfigOrDie(config)
}

// with calls a function while a Fault of the victim's requests is active.
func (f *faulty) with(ctx context.Context, name, match, when, effect string, during func() error) error {
	spec := map[string]any{}
	for field, text := range map[string]string{"match": match, "when": when, "effect": effect} {
		value := map[string]any{}
		if err := json.Unmarshal([]byte("{"+text+"}"), &value); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		spec[field] = value
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "simulation.steersman.dev/v1alpha1", "kind": "Fault",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
	if _, err := f.faults.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	defer func() { _ = f.remove(ctx, name) }()
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		found, err := f.faults.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
		if len(conditions) == 0 {
			return false, nil
		}
		condition := conditions[0].(map[string]any)
		if condition["status"] != "True" {
			return false, fmt.Errorf("not active: %v", condition)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return during()
}

// remove removes a Fault, and returns once it does not happen any more.
func (f *faulty) remove(ctx context.Context, name string) error {
	err := f.faults.Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	time.Sleep(50 * time.Millisecond)
	return err
}

func mapOf(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"v": value}}
}

func create(ctx context.Context, client *kubernetes.Clientset, name string) error {
	_, err := client.CoreV1().ConfigMaps(home).Create(ctx, mapOf(name, "1"), metav1.CreateOptions{})
	return err
}

// exists says whether a ConfigMap is there.
func (f *faulty) exists(ctx context.Context, name string) (bool, error) {
	_, err := f.admin.CoreV1().ConfigMaps(home).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// fails creates a ConfigMap, which must fail, and compares whether it is there afterwards.
func (f *faulty) fails(ctx context.Context, name string, made bool) error {
	if err := create(ctx, f.client(), name); err == nil {
		return errors.New("the create succeeded")
	}
	found, err := f.exists(ctx, name)
	if err == nil && found != made {
		err = fmt.Errorf("made: %t", found)
	}
	return err
}

const ofVictim = `"userAgents": ["victim/*"], "resources": ["configmaps"]`

var faultChecks = []struct {
	name string
	run  func(context.Context, *faulty) error
}{
	{"a conflict is retried", func(ctx context.Context, f *faulty) error {
		if err := create(ctx, f.admin, "conflict"); err != nil {
			return err
		}
		attempts, client := 0, f.client()
		return f.with(ctx, "conflict", ofVictim+`, "verbs": ["update"]`, `"times": 2`, `"status": {"code": 409}`, func() error {
			err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
				attempts++
				_, err := client.CoreV1().ConfigMaps(home).Update(ctx, mapOf("conflict", "2"), metav1.UpdateOptions{})
				return err
			})
			if err == nil && attempts != 3 {
				err = fmt.Errorf("%d attempts", attempts)
			}
			return err
		})
	}},
	{"Retry-After is waited for", func(ctx context.Context, f *faulty) error {
		effect := `"status": {"code": 429, "retryAfterSeconds": 1}`
		return f.with(ctx, "throttled", ofVictim, `"times": 1`, effect, func() error {
			began := time.Now()
			err := create(ctx, f.client(), "throttled")
			if err == nil && time.Since(began) < time.Second {
				err = errors.New("it did not wait")
			}
			return err
		})
	}},
	{"a name of a created object is matched", func(ctx context.Context, f *faulty) error {
		return f.with(ctx, "named", ofVictim+`, "names": ["named-*"]`, "", `"status": {"code": 403}`, func() error {
			if err := create(ctx, f.client(), "unnamed"); err != nil {
				return err
			}
			if err := create(ctx, f.client(), "named-a"); !apierrors.IsForbidden(err) {
				return fmt.Errorf("not forbidden: %v", err)
			}
			return nil
		})
	}},
	{"a slow request runs into a timeout", func(ctx context.Context, f *faulty) error {
		return f.with(ctx, "slow", ofVictim, "", `"delay": {"before": "20s"}`, func() error {
			short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			if err := create(short, f.client(), "slow"); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("no timeout: %v", err)
			}
			return nil
		})
	}},
	{"a request that hangs runs into a timeout", func(ctx context.Context, f *faulty) error {
		return f.with(ctx, "hang", ofVictim, "", `"hang": true`, func() error {
			short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			if err := create(short, f.client(), "hang"); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("no timeout: %v", err)
			}
			return nil
		})
	}},
	{"a cut connection", func(ctx context.Context, f *faulty) error {
		return f.with(ctx, "cut", ofVictim, "", `"cut": true`, func() error { return f.fails(ctx, "cut", false) })
	}},
	{"a lost answer", func(ctx context.Context, f *faulty) error {
		return f.with(ctx, "lost", ofVictim, "", `"loseAnswer": true`, func() error { return f.fails(ctx, "lost", true) })
	}},
	{"garbage", func(ctx context.Context, f *faulty) error {
		return f.with(ctx, "garbage", ofVictim, "", `"garbage": true`, func() error { return f.fails(ctx, "garbage", false) })
	}},
	{"a watch expires", func(ctx context.Context, f *faulty) error {
		effect := `"watch": {"closeAfterEvents": 1, "expire": true}`
		return f.with(ctx, "expire", ofVictim+`, "verbs": ["watch"]`, "", effect, func() error {
			events, err := f.watch(ctx, "expire")
			if err != nil {
				return err
			}
			if first := <-events; first.Type != watch.Added {
				return fmt.Errorf("first %v", first)
			}
			last := <-events
			if err := apierrors.FromObject(last.Object); last.Type != watch.Error || !apierrors.IsResourceExpired(err) {
				return fmt.Errorf("last %v: %v", last.Type, err)
			}
			return nil
		})
	}},
	{"events are held back", func(ctx context.Context, f *faulty) error {
		effect := `"watch": {"hold": true, "withholdBookmarks": true}`
		return f.with(ctx, "hold", ofVictim+`, "verbs": ["watch"]`, "", effect, func() error {
			events, err := f.watch(ctx, "hold")
			if err != nil {
				return err
			}
			select {
			case event := <-events:
				return fmt.Errorf("came: %v", event.Type)
			case <-time.After(300 * time.Millisecond):
			}
			if err := f.remove(ctx, "hold"); err != nil {
				return err
			}
			if event := <-events; event.Type != watch.Added {
				return fmt.Errorf("first %v", event.Type)
			}
			return nil
		})
	}},
	{"reads are stale", func(ctx context.Context, f *faulty) error {
		if err := create(ctx, f.admin, "stale"); err != nil {
			return err
		}
		return f.with(ctx, "stale", ofVictim, "", `"stale": {"hold": true}`, func() error {
			if _, err := f.admin.CoreV1().ConfigMaps(home).Update(ctx, mapOf("stale", "2"), metav1.UpdateOptions{}); err != nil {
				return err
			}
			client := f.client().CoreV1().ConfigMaps(home)
			for _, step := range []struct{ version, value string }{{"0", "1"}, {"", "2"}, {"0", "2"}} {
				found, err := client.Get(ctx, "stale", metav1.GetOptions{ResourceVersion: step.version})
				if err != nil {
					return err
				}
				if found.Data["v"] != step.value {
					return fmt.Errorf("resourceVersion %q: %s instead of %s", step.version, found.Data["v"], step.value)
				}
			}
			return nil
		})
	}},
	{"a webhook fails", func(ctx context.Context, f *faulty) error {
		if err := f.configure(ctx, "closed.example.com", "open.example.com"); err != nil {
			return err
		}
		defer func() {
			_ = f.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, "hooks", metav1.DeleteOptions{})
		}()
		return f.with(ctx, "webhook", `"webhooks": ["hooks"]`, "", `"status": {"code": 500, "message": "no memory"}`, func() error {
			err := create(ctx, f.client(), "reviewed")
			if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `"closed.example.com": failed to call webhook: no memory`) {
				return fmt.Errorf("closed: %v", err)
			}
			_, err = f.client().CoreV1().Secrets(home).Create(
				ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "reviewed"}}, metav1.CreateOptions{},
			)
			return err
		})
	}},
	{"a node falls silent, and time leaps until it is given up", func(ctx context.Context, f *faulty) error {
		return f.with(ctx, "silent", `"nodes": ["node-0"]`, "", `"node": {"silent": true}`, func() error {
			return f.with(ctx, "leap", ofVictim, `"times": 1`, `"clock": {"advance": "2m"}`, func() error {
				if err := create(ctx, f.client(), "leap"); err != nil {
					return err
				}
				return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, f.isUnknown)
			})
		})
	}},
}

func (f *faulty) isUnknown(ctx context.Context) (bool, error) {
	node, err := f.admin.CoreV1().Nodes().Get(ctx, "node-0", metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	for _, each := range node.Status.Conditions {
		if each.Type == corev1.NodeReady {
			return each.Status == corev1.ConditionUnknown, nil
		}
	}
	return false, errors.New("no condition")
}

// watch creates a ConfigMap and returns the events about it.
func (f *faulty) watch(ctx context.Context, name string) (<-chan watch.Event, error) {
	if err := create(ctx, f.admin, name); err != nil {
		return nil, err
	}
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: "0"}
	found, err := f.client().CoreV1().ConfigMaps(home).Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return found.ResultChan(), nil
}

// configure makes webhooks at an address where nobody listens: one of ConfigMaps, one of Secrets whose failures count for nothing.
func (f *faulty) configure(ctx context.Context, closed, open string) error {
	address, none := "https://127.0.0.1:1/", admissionv1.SideEffectClassNone
	hook := func(name, resource string, policy admissionv1.FailurePolicyType) admissionv1.ValidatingWebhook {
		rule := admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}}
		return admissionv1.ValidatingWebhook{
			Name: name, ClientConfig: admissionv1.WebhookClientConfig{URL: &address}, SideEffects: &none,
			AdmissionReviewVersions: []string{"v1"}, FailurePolicy: &policy,
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{"CREATE"}, Rule: rule}},
		}
	}
	_, err := f.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(
		ctx, &admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
			Webhooks: []admissionv1.ValidatingWebhook{
				hook(closed, "configmaps", admissionv1.Fail), hook(open, "secrets", admissionv1.Ignore),
			},
		}, metav1.CreateOptions{},
	)
	return err
}

// meetFaults lets each fault happen to clients, one after the other.
func meetFaults(ctx context.Context, kubeconfig string, out *report) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	makers, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	f := &faulty{config, makers.Resource(faultsResource), admin}
	for _, each := range faultChecks {
		began := time.Now()
		out.add(each.name, began, "", each.run(ctx, f))
	}
	return nil
}
