package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func conflictsAreRetried(ctx context.Context, w *world) (string, error) {
	const clients, each = 5, 10
	configMaps := w.typed.CoreV1().ConfigMaps(w.checks)
	if _, err := configMaps.Create(ctx, configMap("counter", nil), metav1.CreateOptions{}); err != nil {
		return "", err
	}
	backoff := wait.Backoff{Steps: 500, Duration: 2 * time.Millisecond, Factor: 1, Jitter: 5}
	var tries atomic.Int32
	increment := func() error {
		found, err := configMaps.Get(ctx, "counter", metav1.GetOptions{})
		if err != nil {
			return err
		}
		found.Data = map[string]string{"count": found.Data["count"] + "+"}
		_, err = configMaps.Update(ctx, found, metav1.UpdateOptions{})
		tries.Add(1)
		return err
	}
	failures := make([]error, clients)
	var group sync.WaitGroup
	for number := range clients {
		group.Go(func() {
			for range each {
				if err := retry.RetryOnConflict(backoff, increment); err != nil {
					failures[number] = err
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		return "", err
	}
	found, err := configMaps.Get(ctx, "counter", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if count := len(found.Data["count"]); count != clients*each {
		return "", fmt.Errorf("%d updates were acknowledged, %d are there", clients*each, count)
	}
	return fmt.Sprintf("%d updates in %d tries", clients*each, tries.Load()), nil
}

func (w *world) lock(name, identity string) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: w.checks, Name: name},
		Client:     w.typed.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}

// candidate runs for leader until the context ends; it says on the channels when it began and when it ended to lead.
func (w *world) candidate(
	ctx context.Context, name, identity string, duration time.Duration,
) (began, ended chan struct{}, err error) {
	began, ended = make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: w.lock(name, identity), LeaseDuration: duration, RenewDeadline: duration * 2 / 3, RetryPeriod: duration / 10,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(began) },
			OnStoppedLeading: func() { close(ended) },
		},
	})
	if err == nil {
		go elector.Run(ctx)
	}
	return began, ended, err
}

func leadersFollow(ctx context.Context, w *world) (string, error) {
	firstContext, resign := context.WithCancel(ctx)
	defer resign()
	secondContext, cancel := context.WithCancel(ctx)
	defer cancel()
	first, over, err := w.candidate(firstContext, "election", "first", 3*time.Second)
	if err != nil {
		return "", err
	}
	if err := await(first, "the first candidate to lead"); err != nil {
		return "", err
	}
	second, _, err := w.candidate(secondContext, "election", "second", 3*time.Second)
	if err != nil {
		return "", err
	}
	select {
	case <-second:
		return "", errors.New("two candidates led at the same time")
	case <-over:
		return "", errors.New("the first leader lost its lease")
	case <-time.After(1500 * time.Millisecond):
	}
	resign()
	if err := await(second, "the second candidate to follow"); err != nil {
		return "", err
	}
	lease, err := w.typed.CoordinationV1().Leases(w.checks).Get(ctx, "election", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if *lease.Spec.HolderIdentity != "second" || *lease.Spec.LeaseTransitions < 1 {
		return "", fmt.Errorf("the lease is %v", lease.Spec)
	}
	return fmt.Sprintf("%d transitions", *lease.Spec.LeaseTransitions), nil
}

func leaderStays(ctx context.Context, w *world) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began, ended, err := w.candidate(ctx, "reign", "only", 15*time.Second)
	if err != nil {
		return "", err
	}
	if err := await(began, "the candidate to lead"); err != nil {
		return "", err
	}
	select {
	case <-ended:
		return "", errors.New("it lost its lease")
	case <-time.After(6 * time.Second):
		return "led for 6 s", nil
	}
}

func await(done <-chan struct{}, what string) error {
	select {
	case <-done:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("waited %s for %s", patience, what)
	}
}

// watchIsResumed follows one object with a RetryWatcher, while each of its watches lasts a second at most.
func watchIsResumed(ctx context.Context, w *world) (string, error) {
	const updates = 60
	configMaps := w.typed.CoreV1().ConfigMaps(w.checks)
	var began *corev1.ConfigMap
	if err := w.persist(ctx, func() (err error) {
		began, err = configMaps.Create(ctx, configMap("watched", nil), metav1.CreateOptions{})
		return err
	}); err != nil {
		return "", err
	}
	var watches atomic.Int32
	watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, began.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			second := int64(1)
			options.FieldSelector, options.TimeoutSeconds = "metadata.name=watched", &second
			watches.Add(1)
			return configMaps.Watch(ctx, options)
		},
	})
	if err != nil {
		return "", err
	}
	defer watcher.Stop()
	failed := make(chan error, 1)
	go func() {
		for number := range updates {
			patch := encode(map[string]any{"data": map[string]string{"number": fmt.Sprint(number)}})
			if err := w.persist(ctx, func() error {
				_, err := configMaps.Patch(ctx, "watched", types.MergePatchType, patch, metav1.PatchOptions{})
				return err
			}); err != nil {
				failed <- err
				return
			}
			time.Sleep(60 * time.Millisecond)
		}
	}()
	next := 0
	for next < updates {
		select {
		case err := <-failed:
			return "", err
		case event, open := <-watcher.ResultChan():
			if !open {
				return "", fmt.Errorf("the watch ended before update %d", next)
			}
			found, ok := event.Object.(*corev1.ConfigMap)
			if event.Type != watch.Modified || !ok || found.Data["number"] != fmt.Sprint(next) {
				return "", fmt.Errorf("update %d was to come, and %v did", next, event)
			}
			next++
		case <-time.After(patience):
			return "", fmt.Errorf("waited %s for update %d", patience, next)
		}
	}
	if watches.Load() < 3 {
		return "", fmt.Errorf("it needed no more than %d watches", watches.Load())
	}
	return fmt.Sprintf("%d updates seen by %d watches", updates, watches.Load()), nil
}

func conditionIsWaitedFor(ctx context.Context, w *world) (string, error) {
	pods := w.typed.CoreV1().Pods(w.checks)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "waited-for"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
	pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	go func() {
		time.Sleep(500 * time.Millisecond)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			w.report.add("a status is updated", time.Now(), "", err)
		}
	}()
	lw := cache.NewListWatchFromClient(
		w.typed.CoreV1().RESTClient(), "pods", w.checks, fields.OneTermEqualSelector("metadata.name", pod.Name))
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	event, err := toolswatch.UntilWithSync(patient, lw, &corev1.Pod{}, func(store cache.Store) (bool, error) {
		if len(store.List()) != 1 {
			return false, fmt.Errorf("the store has %d objects", len(store.List()))
		}
		return false, nil
	}, func(event watch.Event) (bool, error) {
		found := event.Object.(*corev1.Pod)
		return len(found.Status.Conditions) > 0 && found.Status.Phase == corev1.PodRunning, nil
	})
	if err != nil {
		return "", err
	}
	return string(event.Type), nil
}

func listComesInPages(ctx context.Context, w *world) (string, error) {
	const total, size = 57, 10
	configMaps := w.typed.CoreV1().ConfigMaps(w.checks)
	for number := range total {
		made := configMap(fmt.Sprintf("page-%02d", number), nil)
		made.Labels = map[string]string{"paged": "yes"}
		if _, err := configMaps.Create(ctx, made, metav1.CreateOptions{}); err != nil {
			return "", err
		}
	}
	requests, remaining := 0, int64(0)
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		requests++
		list, err := configMaps.List(ctx, options)
		if err == nil && list.RemainingItemCount != nil {
			remaining += *list.RemainingItemCount
		}
		return list, err
	})
	pages.PageSize = size
	options := metav1.ListOptions{LabelSelector: "paged=yes"}
	list, paginated, err := pages.List(ctx, options)
	if err != nil {
		return "", err
	}
	if count := meta.LenList(list); count != total || !paginated || requests != (total+size-1)/size {
		return "", fmt.Errorf("%d objects in %d pages (%t)", count, requests, paginated)
	}
	if remaining != 0 {
		return "", errors.New("objects that remain are counted though there is a selector")
	}
	var listed []string
	if err := pages.EachListItem(ctx, options, func(obj runtime.Object) error {
		listed = append(listed, obj.(*corev1.ConfigMap).Name)
		return nil
	}); err != nil {
		return "", err
	}
	if !slices.IsSorted(listed) || len(slices.Compact(listed)) != total {
		return "", fmt.Errorf("the pages are %v", listed)
	}
	return fmt.Sprintf("%d objects in %d pages", total, requests/2), nil
}

func preferred(client discovery.DiscoveryInterface) ([]string, error) {
	lists, err := client.ServerPreferredResources()
	var found []string
	for _, list := range lists {
		for _, each := range list.APIResources {
			found = append(found, fmt.Sprint(list.GroupVersion, " ", each.Kind, " ", each.Name, each.Namespaced, each.Verbs))
		}
	}
	slices.Sort(found)
	return found, err
}

func discoveryAgrees(_ context.Context, w *world) (string, error) {
	aggregated := w.plain.Discovery()
	found, err := preferred(aggregated)
	if err != nil {
		return "", err
	}
	single, err := discovery.NewDiscoveryClientForConfig(w.config)
	if err != nil {
		return "", err
	}
	single.UseLegacyDiscovery = true
	legacy, err := preferred(single)
	if err != nil {
		return "", err
	}
	if !slices.Equal(found, legacy) {
		return "", fmt.Errorf("aggregated discovery has %v, single documents have %v", found, legacy)
	}
	groups, err := restmapper.GetAPIGroupResources(aggregated)
	if err != nil {
		return "", err
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), aggregated, nil)
	for short, want := range map[string]schema.GroupVersionKind{
		"po": {Version: "v1", Kind: "Pod"}, "deploy": {Group: "apps", Version: "v1", Kind: "Deployment"},
		"netpol": {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		"hpa":    {Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
		"cm":     {Version: "v1", Kind: "ConfigMap"}, "sa": {Version: "v1", Kind: "ServiceAccount"},
	} {
		if kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: short}); err != nil || kind != want {
			return "", fmt.Errorf("%s is mapped to %v (%v)", short, kind, err)
		}
	}
	version, err := aggregated.ServerVersion()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d resources, version %s", len(found), version.GitVersion), nil
}

func openAPIDescribes(_ context.Context, w *world) (string, error) {
	root := openapi3.NewRoot(w.plain.Discovery().OpenAPIV3())
	versions, err := root.GroupVersions()
	if err != nil {
		return "", err
	}
	schemas := 0
	for _, each := range versions {
		document, err := root.GVSpec(each)
		if err != nil {
			return "", fmt.Errorf("%v: %w", each, err)
		}
		if document.Components != nil {
			schemas += len(document.Components.Schemas)
		}
	}
	old, err := w.plain.Discovery().OpenAPISchema()
	if err != nil {
		return "", err
	}
	definitions := len(old.GetDefinitions().GetAdditionalProperties())
	if schemas < definitions || definitions < 100 {
		return "", fmt.Errorf("%d schemas and %d definitions", schemas, definitions)
	}
	return fmt.Sprintf("%d group versions, %d definitions", len(versions), definitions), nil
}

// eventsAreCounted records the same event again and again, with the recorders of both groups.
func eventsAreCounted(ctx context.Context, w *world) (string, error) {
	const times = 4
	about, err := w.typed.CoreV1().ConfigMaps(w.checks).Create(ctx, configMap("about", nil), metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	old := record.NewBroadcaster(record.WithContext(ctx))
	defer old.Shutdown()
	old.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: w.typed.CoreV1().Events("")})
	recorder := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "old"})
	current := events.NewBroadcaster(&events.EventSinkImpl{Interface: w.typed.EventsV1()})
	if err := current.StartRecordingToSinkWithContext(ctx); err != nil {
		return "", err
	}
	defer current.Shutdown()
	series := current.NewRecorder(scheme.Scheme, "example.com/current")
	selector := metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(about.UID)}
	series.Eventf(about, nil, corev1.EventTypeNormal, "Current", "Doing", "the same")
	// One that repeats another before that has been made is tried again after ten seconds.
	if err := eventually(ctx, 50*time.Millisecond, func() (bool, string, error) {
		list, err := w.plain.CoreV1().Events(w.checks).List(ctx, selector)
		return err == nil && len(list.Items) == 1, "there is no event", err
	}); err != nil {
		return "", err
	}
	for range times {
		recorder.Event(about, corev1.EventTypeNormal, "Old", "the same")
		series.Eventf(about, nil, corev1.EventTypeNormal, "Current", "Doing", "the same")
		time.Sleep(20 * time.Millisecond)
	}
	err = eventually(ctx, 100*time.Millisecond, func() (bool, string, error) {
		list, err := w.plain.CoreV1().Events(w.checks).List(ctx, selector)
		if err != nil {
			return false, "", err
		}
		counts, inSeries := int32(0), int32(0)
		for _, each := range list.Items {
			if each.Reason == "Old" {
				counts += each.Count
			}
			if each.Series != nil {
				inSeries = each.Series.Count
			}
		}
		done := len(list.Items) == 2 && counts == times && inSeries > 1
		return done, fmt.Sprintf("%d events, %d counted, %d in a series", len(list.Items), counts, inSeries), nil
	})
	return fmt.Sprintf("%d times", times), err
}

func subresourcesWork(ctx context.Context, w *world) (string, error) {
	deployments := w.typed.AppsV1().Deployments(w.checks)
	made := deployment(2)
	made.Name = "scaled"
	if _, err := deployments.Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	groups, err := restmapper.GetAPIGroupResources(w.plain.Discovery())
	if err != nil {
		return "", err
	}
	scales, err := scale.NewForConfig(w.config, restmapper.NewDiscoveryRESTMapper(groups),
		dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(w.plain.Discovery()))
	if err != nil {
		return "", err
	}
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	current, err := scales.Scales(w.checks).Get(ctx, resource, "scaled", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	current.Spec.Replicas = 5
	current, err = scales.Scales(w.checks).Update(ctx, resource, current, metav1.UpdateOptions{})
	if err != nil || current.Spec.Replicas != 5 {
		return "", fmt.Errorf("the scale is %v (%w)", current, err)
	}
	tokens := w.typed.CoreV1().ServiceAccounts(w.checks)
	token, err := tokens.CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil || strings.Count(token.Status.Token, ".") != 2 {
		return "", fmt.Errorf("no token: %w", err)
	}
	review, err := w.typed.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token},
	}, metav1.CreateOptions{})
	user := "system:serviceaccount:" + w.checks + ":default"
	if err != nil || review.Status.User.Username != user {
		return "", fmt.Errorf("the token is taken for %v (%w)", review, err)
	}
	access, err := w.typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets"},
		},
	}, metav1.CreateOptions{})
	if err != nil || access.Status.Allowed {
		return "", fmt.Errorf("the service account may read secrets: %v (%w)", access, err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "evicted"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
	pods := w.typed.CoreV1().Pods(w.checks)
	if _, err = pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	binding := &corev1.Binding{ObjectMeta: pod.ObjectMeta, Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
	if err = pods.Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	now := int64(0)
	eviction := &policyv1.Eviction{ObjectMeta: pod.ObjectMeta, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &now}}
	if err = pods.EvictV1(ctx, eviction); err != nil {
		return "", err
	}
	if _, err = pods.Get(ctx, "evicted", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("the evicted pod is there (%v)", err)
	}
	return "scale, token, binding, eviction, reviews", nil
}
