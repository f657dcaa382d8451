package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

var followed = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "events"},
	{Version: "v1", Resource: "namespaces"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
}

// scope is what an informer asks for of a resource.
type scope struct {
	resource  schema.GroupVersionResource
	namespace string
	labels    string
	fields    string
}

func (s scope) String() string {
	name := s.resource.Resource
	for _, each := range []string{s.namespace, s.labels, s.fields} {
		if each != "" {
			name += " " + each
		}
	}
	return name
}

func (s scope) tweak(options *metav1.ListOptions) {
	options.LabelSelector, options.FieldSelector = s.labels, s.fields
}

func (s scope) path() string {
	root := "/apis/" + s.resource.Group
	if s.resource.Group == "" {
		root = "/api"
	}
	if s.namespace != "" {
		return root + "/" + s.resource.Version + "/namespaces/" + s.namespace + "/" + s.resource.Resource
	}
	return root + "/" + s.resource.Version + "/" + s.resource.Resource
}

// follower is an informer, what its handlers were told, and how a list is read into objects of its sort.
type follower struct {
	name     string
	scope    scope
	informer cache.SharedIndexInformer
	decode   func([]byte) ([]runtime.Object, error)
	world    *world

	mutex    sync.Mutex
	events   int
	mirror   map[string]string
	mistakes []string
}

// follow starts informers of all sorts for everything that is followed, and for some selections. They have synced
// when it returns.
func (w *world) follow(ctx context.Context) ([]*follower, error) {
	var scopes []scope
	for _, resource := range followed {
		scopes = append(scopes, scope{resource: resource})
	}
	red := w.namespaces[0]
	scopes = append(scopes,
		scope{resource: followed[0], namespace: red, labels: "color=red"},
		scope{resource: followed[0], labels: "color notin (red,green)", fields: "metadata.namespace=" + red},
		scope{resource: followed[1], fields: "type=example.com/red"},
		scope{resource: followed[2], fields: "spec.nodeName=red"},
		scope{resource: followed[2], namespace: red, fields: "status.phase!=Running", labels: "color"},
		scope{resource: followed[4], fields: "reason=red"},
		scope{resource: followed[7], namespace: red, fields: "metadata.name=w-1"},
	)
	var followers []*follower
	for _, each := range scopes {
		typed := informers.NewSharedInformerFactoryWithOptions(
			w.typed, 0, informers.WithNamespace(each.namespace), informers.WithTweakListOptions(each.tweak))
		informer, err := typed.ForResource(each.resource)
		if err != nil {
			return nil, err
		}
		untyped := dynamicinformer.NewFilteredDynamicInformer(
			w.dynamic, each.resource, each.namespace, 0, cache.Indexers{}, each.tweak)
		partial := metadatainformer.NewFilteredMetadataInformer(
			w.metadata, each.resource, each.namespace, 0, cache.Indexers{}, each.tweak)
		followers = append(followers,
			w.newFollower("typed", each, informer.Informer(), decodeTyped),
			w.newFollower("dynamic", each, untyped.Informer(), decodeUntyped),
			w.newFollower("metadata", each, partial.Informer(), decodePartial),
		)
	}
	var synced []cache.InformerSynced
	for _, each := range followers {
		registration, err := each.informer.AddEventHandler(each)
		if err != nil {
			return nil, err
		}
		go each.informer.RunWithContext(ctx)
		synced = append(synced, registration.HasSynced)
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !cache.WaitForCacheSync(patient.Done(), synced...) {
		return nil, fmt.Errorf("informers did not sync within %s", patience)
	}
	return followers, nil
}

func (w *world) newFollower(
	sort string, s scope, informer cache.SharedIndexInformer, decode func([]byte) ([]runtime.Object, error),
) *follower {
	return &follower{
		name: sort + " " + s.String(), scope: s, informer: informer, decode: decode, world: w,
		mirror: map[string]string{},
	}
}

// decodeTyped reads a list as JSON; the informer has read protobuf.
func decodeTyped(data []byte) ([]runtime.Object, error) {
	list, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), data)
	if err != nil {
		return nil, err
	}
	return meta.ExtractList(list)
}

func decodeUntyped(data []byte) ([]runtime.Object, error) {
	list, err := runtime.Decode(unstructured.UnstructuredJSONScheme, data)
	if err != nil {
		return nil, err
	}
	return meta.ExtractList(list)
}

// decodePartial takes the metadata of whole objects; the informer has asked the server for no more than that.
func decodePartial(data []byte) ([]runtime.Object, error) {
	objects, err := decodeTyped(data)
	for at, each := range objects {
		whole, err := meta.Accessor(each)
		if err != nil {
			return nil, err
		}
		objects[at] = meta.AsPartialObjectMetadata(whole)
	}
	return objects, err
}

func (f *follower) mistake(format string, arguments ...any) {
	f.mistakes = append(f.mistakes, fmt.Sprintf(format, arguments...))
}

// OnAdd, OnUpdate and OnDelete hold what handlers are told against what they were told before.
func (f *follower) OnAdd(obj any, _ bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.events++
	key, version := identify(obj)
	if _, known := f.mirror[key]; known {
		f.mistake("%s was added twice", key)
	}
	f.mirror[key] = version
}

func (f *follower) OnUpdate(before, after any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.events++
	key, version := identify(after)
	_, old := identify(before)
	if f.mirror[key] != old {
		f.mistake("%s was updated from version %s, but was at %q", key, old, f.mirror[key])
	}
	if number(version) < number(old) {
		f.mistake("%s went back from version %s to %s", key, old, version)
	}
	f.mirror[key] = version
}

func (f *follower) OnDelete(obj any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.events++
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	key, _ := identify(obj)
	if _, known := f.mirror[key]; !known {
		f.mistake("%s was deleted, but was not known", key)
	}
	delete(f.mirror, key)
}

func identify(obj any) (key, version string) {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		panic(err)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return key, accessor.GetResourceVersion()
}

func number(version string) uint64 {
	parsed, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		panic(err)
	}
	return parsed
}

func (f *follower) told() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.events
}

// converge waits until the informer's store and its handlers know what a list shows.
func (f *follower) converge(ctx context.Context) (string, error) {
	objects := 0
	err := eventually(ctx, 200*time.Millisecond, func() (bool, string, error) {
		live, err := f.list(ctx)
		if f.world.lost(err) {
			return false, err.Error(), nil
		}
		if err != nil {
			return false, "", err
		}
		objects = len(live)
		difference := f.compare(live)
		return difference == "", difference, nil
	})
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err == nil && len(f.mistakes) > 0 {
		err = fmt.Errorf("%d mistakes, the first: %s", len(f.mistakes), f.mistakes[0])
	}
	return fmt.Sprintf("%d objects, %d events", objects, f.events), err
}

func (f *follower) list(ctx context.Context) (map[string]runtime.Object, error) {
	request := f.world.plain.CoreV1().RESTClient().Get().AbsPath(f.scope.path())
	for name, value := range map[string]string{"labelSelector": f.scope.labels, "fieldSelector": f.scope.fields} {
		if value != "" {
			request = request.Param(name, value)
		}
	}
	data, err := request.Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	objects, err := f.decode(data)
	if err != nil {
		return nil, err
	}
	found := make(map[string]runtime.Object, len(objects))
	for _, each := range objects {
		key, _ := identify(each)
		found[key] = each
	}
	return found, nil
}

// compare says where the store or the handlers differ from what there is; "" if nowhere.
func (f *follower) compare(live map[string]runtime.Object) string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	known := f.informer.GetStore().ListKeys()
	for _, key := range known {
		if live[key] == nil {
			return key + " is known, but is not listed"
		}
	}
	for _, key := range slices.Sorted(maps.Keys(live)) {
		obj, exists, err := f.informer.GetStore().GetByKey(key)
		if err != nil || !exists {
			return fmt.Sprintf("%s is listed, but is not known (%v)", key, err)
		}
		_, listed := identify(live[key])
		if _, version := identify(obj); version != listed {
			return fmt.Sprintf("%s is known at version %s, and listed at %s", key, version, listed)
		}
		if f.mirror[key] != listed {
			return fmt.Sprintf("%s is at version %s, but handlers were told of %q", key, listed, f.mirror[key])
		}
		if !equality.Semantic.DeepEqual(bare(obj.(runtime.Object)), bare(live[key])) {
			return fmt.Sprintf("%s at version %s differs: known as %v, listed as %v", key, listed, obj, live[key])
		}
	}
	if len(f.mirror) != len(live) {
		return fmt.Sprintf("handlers know %d objects, %d are listed", len(f.mirror), len(live))
	}
	return ""
}

// bare is an object without its type, which decoders of lists set or leave out.
func bare(obj runtime.Object) runtime.Object {
	bared := obj.DeepCopyObject()
	if _, untyped := bared.(*unstructured.Unstructured); !untyped {
		bared.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return bared
}
