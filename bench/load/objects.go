package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// A body is JSON with placeholders: @NAME@, @TICK@ (a number that changes; less than 0 keeps the placeholder)
// @RV@ (resourceVersion) and @PAYLOAD@ (1 KiB that compresses to about half).
func fill(body []byte, name string, tick int64, version string) []byte {
	body = bytes.ReplaceAll(body, []byte("@NAME@"), []byte(name))
	if tick >= 0 {
		body = bytes.ReplaceAll(body, []byte("@TICK@"), strconv.AppendInt(nil, tick, 10))
	}
	if bytes.Contains(body, []byte("@PAYLOAD@")) {
		payload := []byte{}
		for range 64 {
			payload = fmt.Appendf(payload, "%016x", rand.Uint64())
		}
		body = bytes.ReplaceAll(body, []byte("@PAYLOAD@"), payload)
	}
	return bytes.ReplaceAll(body, []byte("@RV@"), []byte(version))
}

// kind is a resource that the work loads create.
type kind struct {
	name  string // short name for the rows
	group string // path up to the version
	many  string // resource name in paths
	body  []byte
}

func (k *kind) path(namespace, name string) string {
	path := k.group + "/namespaces/" + namespace + "/" + k.many
	if name != "" {
		path += "/" + name
	}
	return path
}

var (
	namespaceBody = []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"@NAME@"}}`)

	// A ConfigMap with 1 KiB of data.
	configMaps = &kind{"configmap", "/api/v1", "configmaps", []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"@NAME@","labels":{"app":"load"}},"data":{"tick":"T@@TICK@","payload":"@PAYLOAD@"}}`)}

	// A Pod that reads back as about 3 KB of JSON once the server has set defaults and managedFields.
	pods = &kind{"pod", "/api/v1", "pods", []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"@NAME@","labels":{"app":"load","app.kubernetes.io/name":"web","app.kubernetes.io/part-of":"shop","shard":"s@TICK@"},"annotations":{"bench.example.com/tick":"@TICK@","prometheus.io/scrape":"true"}},
"spec":{"automountServiceAccountToken":false,"terminationGracePeriodSeconds":30,"containers":[
{"name":"web","image":"registry.example.com/shop/web:1.42.0","command":["/bin/web"],"args":["--port=8080","--log-level=info"],"ports":[{"name":"http","containerPort":8080}],"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},{"name":"MODE","value":"production"}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},"readinessProbe":{"httpGet":{"path":"/ready","port":"http"},"periodSeconds":5},"volumeMounts":[{"name":"cache","mountPath":"/var/cache"}]},
{"name":"agent","image":"registry.example.com/shop/agent:0.9.1","resources":{"requests":{"cpu":"10m","memory":"32Mi"}}}],
"volumes":[{"name":"cache","emptyDir":{}}]}}`)}

	// A custom resource of the definition below.
	widgets = &kind{"widget", "/apis/bench.example.com/v1", "widgets", widgetBody("bench.example.com")}
)

func widgetBody(group string) []byte {
	return []byte(`{"apiVersion":"` + group + `/v1","kind":"Widget","metadata":{"name":"@NAME@","labels":{"app":"load"},"annotations":{"bench.example.com/tick":"@TICK@"}},"spec":{"image":"registry.example.com/shop/web:1.42.0","replicas":3,"minReplicas":1,"maxReplicas":9,"paused":false,"mode":"Rolling","schedule":"0 3 * * *","timeoutSeconds":30,"ports":[{"name":"http","port":8080},{"name":"admin","port":9090}],"resources":{"cpu":"100m","memory":"128Mi"},"selector":{"app":"web","tier":"front"},"hosts":["a.example.com","b.example.com"],"note":"` + strings.Repeat("note ", 60) + `"}}`)
}

// definition is a CRD with a structural schema of 5 KB, of which objects use about 15 fields, and two CEL rules.
func definition(group string) []byte {
	return []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.` + group + `"},"spec":{"group":"` + group + `","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":` + widgetSchema(unusedFields()) + `}}]}}`)
}

// widgetSchema is the schema of widgets, with more fields of their spec.
func widgetSchema(fields string) string {
	return `{"type":"object","required":["spec"],"properties":{
"spec":{"type":"object","required":["image","replicas"],"x-kubernetes-validations":[{"rule":"self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas","message":"replicas must lie between minReplicas and maxReplicas"},{"rule":"self.ports.all(p, p.port != 22) && self.hosts.all(h, h.endsWith('.example.com'))","message":"no port 22, only example.com hosts"}],"properties":{
"image":{"type":"string","minLength":1,"maxLength":200},"replicas":{"type":"integer","format":"int32","minimum":0},"minReplicas":{"type":"integer","default":1},"maxReplicas":{"type":"integer","default":10},"paused":{"type":"boolean","default":false},"mode":{"type":"string","enum":["Rolling","Recreate"]},"schedule":{"type":"string","pattern":"^[0-9*/ ,-]+$"},"timeoutSeconds":{"type":"integer","minimum":1,"maximum":3600},
"ports":{"type":"array","maxItems":10,"items":{"type":"object","required":["port"],"properties":{"name":{"type":"string","maxLength":30},"port":{"type":"integer","minimum":1,"maximum":65535},"protocol":{"type":"string","default":"TCP"}}}},
"resources":{"type":"object","properties":{"cpu":{"x-kubernetes-int-or-string":true},"memory":{"type":"string"}}},"selector":{"type":"object","additionalProperties":{"type":"string"}},"hosts":{"type":"array","maxItems":10,"items":{"type":"string","maxLength":100}},"note":{"type":"string","maxLength":1000},"priority":{"type":"integer","default":5},"owner":{"type":"string"}` + fields + `}},
"status":{"type":"object","properties":{"observed":{"type":"integer"},"phase":{"type":"string"},"conditions":{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},"status":{"type":"string"},"message":{"type":"string"}}}}}}}}`
}

// unusedFields are properties that no object has, as most of a real schema.
func unusedFields() string {
	var text strings.Builder
	for number := range 8 {
		fmt.Fprintf(&text, `,"option%d":{"type":"object","description":"an option that few objects say anything of, with its own defaults and limits","properties":{"name":{"type":"string","maxLength":63,"pattern":"^[a-z0-9-]+$"},"count":{"type":"integer","minimum":0,"default":1},"labels":{"type":"object","additionalProperties":{"type":"string"}},"mode":{"type":"string","enum":["Always","Never"]}}}`, number)
	}
	return text.String()
}

// post creates an object; one that exists already is fine.
func (b *bench) post(path string, body []byte) error {
	_, err := b.client.do(b.ctx, 0, request{method: "POST", path: path, body: body}, nil)
	var status *statusError
	if errors.As(err, &status) && status.code == 409 {
		return nil
	}
	return err
}

// errNoCustomResources is the error of define when the server has none.
var errNoCustomResources = errors.New("the server has no custom resources")

// define creates a CRD and waits until the server serves it.
func (b *bench) define(group string) error {
	err := b.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(group))
	var status *statusError
	if errors.As(err, &status) && (status.code == http.StatusNotFound || status.code == http.StatusNotImplemented) {
		return fmt.Errorf("%w: HTTP %d to a CustomResourceDefinition", errNoCustomResources, status.code)
	}
	if err != nil {
		return err
	}
	return b.served(group)
}

// widgetsFor defines the custom resource of some rows; where the server has none it says that the rows are left out.
func (b *bench) widgetsFor(rows string) (bool, error) {
	err := b.define("bench.example.com")
	if errors.Is(err, errNoCustomResources) {
		fmt.Fprintf(os.Stderr, "load: %s left out: %v\n", rows, err)
		return false, nil
	}
	return err == nil, err
}

// served waits until the resource of a CRD can be listed.
func (b *bench) served(group string) (err error) {
	for range 600 {
		if _, err = b.client.do(b.ctx, 0, request{path: "/apis/" + group + "/v1/widgets", query: "limit=1"}, nil); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// populate creates objects named PREFIX-0 ... and returns the row of doing so.
func (b *bench) populate(row string, k *kind, prefix string, from, to int) (*Result, error) {
	path := k.path(b.namespace, "")
	r := b.measure(row, 32, 10*time.Minute, to-from, func(w *worker, n int) error {
		name := fmt.Sprintf("%s-%d", prefix, from+n)
		_, err := b.client.do(b.ctx, w.id, request{method: "POST", path: path, body: fill(k.body, name, int64(n%20), "")}, nil)
		return err
	})
	if r.Ops != to-from {
		return r, fmt.Errorf("created %d of %d %s: %v", r.Ops, to-from, k.many, r.Errors)
	}
	return r, nil
}

// fetch reads an object back and turns it into a body for PUT, with an edit.
func (b *bench) fetch(path string, edit func(map[string]any)) ([]byte, error) {
	got, err := b.client.do(b.ctx, 0, request{path: path}, new(bytes.Buffer))
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	if err := json.Unmarshal(got.body, &object); err != nil {
		return nil, err
	}
	edit(object)
	return json.Marshal(object)
}

// cleanUp deletes the ConfigMaps, Pods, custom resources and the namespace of this run.
func (b *bench) cleanUp() {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	for _, k := range []*kind{configMaps, pods, widgets} {
		b.client.do(ctx, 0, request{method: "DELETE", path: k.path(b.namespace, ""), query: "gracePeriodSeconds=0"}, nil)
	}
	b.client.do(ctx, 0, request{method: "DELETE", path: "/api/v1/namespaces/" + b.namespace}, nil)
}

// between returns the text after the first occurrence of a mark, up to the next quote.
func between(body []byte, mark string) string {
	_, rest, found := bytes.Cut(body, []byte(mark))
	if end := bytes.IndexByte(rest, '"'); found && end >= 0 {
		return string(rest[:end])
	}
	return ""
}

func resourceVersion(body []byte) string { return between(body, `"resourceVersion":"`) }

// continueToken finds metadata.continue of a list in either format.
func continueToken(body []byte, format string) string {
	if format != "protobuf" {
		return between(body[:min(len(body), 4096)], `"continue":"`)
	}
	if len(body) < 4 {
		return ""
	}
	// "k8s\0", then Unknown{raw: 2}, List{metadata: 1}, ListMeta{continue: 3}
	return string(field(field(field(body[4:], 2), 1), 3))
}

// field returns the first length-delimited protobuf field of that number.
func field(message []byte, want uint64) []byte {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return nil
		}
		size, m := binary.Uvarint(message[n:])
		message = message[n+max(m, 0):]
		switch tag & 7 {
		case 0:
		case 2:
			if m <= 0 || size > uint64(len(message)) {
				return nil
			}
			if tag>>3 == want {
				return message[:size]
			}
			message = message[size:]
		default:
			return nil
		}
	}
	return nil
}
