package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// mixed is what operators do: 70% get and list from the cache, 20% status updates, 10% create and delete.
func mixed(b *bench) error {
	workers := b.opt.concurrency[0]
	row := fmt.Sprintf("mixed/c%d", workers)
	if served, err := b.widgetsFor(row); err != nil || !served {
		return err
	}
	if _, err := b.populate("", pods, "seen", 0, 500); err != nil {
		return err
	}
	if _, err := b.populate("", widgets, "mine", 0, workers); err != nil {
		return err
	}
	report, err := b.updater(widgets, "status", workers)
	if err != nil {
		return err
	}
	made := make([]string, workers) // the worker's ConfigMap that waits to be deleted
	act := func(w *worker, n int) (string, error) {
		var ask request
		verb := ""
		switch dice := w.rand.IntN(100); {
		case dice < 55:
			verb, ask = "get", request{path: pods.path(b.namespace, fmt.Sprintf("seen-%d", n%500)), query: "resourceVersion=0"}
		case dice < 70:
			verb, ask = "list", request{path: pods.path(b.namespace, ""), query: fmt.Sprintf("resourceVersion=0&labelSelector=shard%%3Ds%d", n%20)}
		case dice < 90:
			return "status", report(w, n)
		case made[w.id] == "":
			name := fmt.Sprintf("temp-%d-%d", w.id, time.Now().UnixNano())
			verb, ask = "create", request{method: "POST", path: configMaps.path(b.namespace, ""), body: fill(configMaps.body, name, 0, "")}
			made[w.id] = name
		default:
			verb, ask = "delete", request{method: "DELETE", path: configMaps.path(b.namespace, made[w.id])}
			made[w.id] = ""
		}
		_, err := b.client.do(b.ctx, w.id, ask, nil)
		return verb, err
	}
	op := func(w *worker, n int) error {
		began := time.Now()
		verb, err := act(w, n)
		if err == nil {
			w.observe(verb, time.Since(began))
		}
		return err
	}
	b.warm(workers, op)
	b.emit(b.measure(row, workers, b.span(), 1<<30, op))
	return nil
}

// storm floods the server with full consistent lists while two probes ask for /readyz and for a Node.
func storm(b *bench) error {
	const role = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"load-reader"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]}`
	if _, err := b.populate("", configMaps, "item", 0, b.opt.listed); err != nil {
		return err
	}
	if b.opt.stormToken != "" && b.opt.cert != "" {
		return fmt.Errorf("--storm-token needs --token: the client certificate would speak for the storm too")
	}
	if b.opt.stormToken != "" {
		review := []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)
		who, err := b.client.do(b.ctx, 0, request{method: "POST", path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", body: review, token: b.opt.stormToken}, new(bytes.Buffer))
		if err != nil {
			return fmt.Errorf("who is the storm user: %w", err)
		}
		binding := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"load-reader"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"load-reader"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"` + between(who.body, `"username":"`) + `"}]}`
		if err := errors.Join(b.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", []byte(role)), b.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", []byte(binding))); err != nil {
			return err
		}
		time.Sleep(time.Second) // the authorizer follows by watch
	}
	system := request{path: "/api/v1/nodes/node-a", token: b.opt.systemToken}
	if err := b.post("/api/v1/nodes", []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a"}}`)); err != nil {
		return err
	}
	// Load balancers probe without credentials and on new connections; some servers do not allow the former.
	ready := request{path: "/readyz", token: "-"}
	fresh := b.client.transport()
	fresh.DisableKeepAlives = true
	if err := b.probe(ready, fresh); err != nil {
		ready.token = ""
	}
	if err := errors.Join(b.probe(ready, fresh), b.probe(system, b.client.transports[0])); err != nil {
		return err
	}
	probes, stop := make([]*Result, 2), make(chan struct{})
	var group sync.WaitGroup
	for index, each := range []struct {
		name string
		ask  request
		via  *http.Transport
	}{{"storm/readyz", ready, fresh}, {"storm/system", system, b.client.transport()}} {
		group.Go(func() {
			before, began := b.meter.read(), time.Now()
			crew := b.loop(1, b.span()+30*time.Second, 1<<30, func(w *worker, n int) error {
				select {
				case <-stop:
					return errStop
				case <-time.After(50 * time.Millisecond):
				}
				began := time.Now()
				err := b.probe(each.ask, each.via)
				w.observe("probe", time.Since(began))
				return err
			})
			r := b.summarize(each.name, before, time.Since(began), crew)
			// A probe that failed counts with the time it took; the pause between probes does not count.
			r.P50, r.P95, r.P99 = r.Extra["probe_p50_ms"], 0, r.Extra["probe_p99_ms"]
			r.ServerCPU, r.ServerCPUBy, r.GeneratorCPU, r.Extra = 0, nil, 0, nil
			probes[index] = r
		})
	}
	peak := 0.0
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
				peak = max(peak, b.meter.read().totalRSS/(1<<20))
			}
		}
	})
	path := configMaps.path(b.namespace, "")
	// What is still under way when the time is up is cut off: it would otherwise run into the next measurement.
	ctx, cut := context.WithTimeout(b.ctx, b.span()+5*time.Second)
	defer cut()
	var unanswered atomic.Int64
	r := b.measure(fmt.Sprintf("storm/lists/c%d", b.opt.clients), b.opt.clients, b.span(), 1<<30, func(w *worker, n int) error {
		got, err := b.client.do(ctx, w.id, request{path: path, token: b.opt.stormToken}, nil)
		w.bytes += got.size
		if ctx.Err() != nil {
			unanswered.Add(1)
			return errStop
		}
		var status *statusError
		if errors.As(err, &status) && status.code == http.StatusTooManyRequests {
			time.Sleep(time.Second) // as Retry-After tells clients
		}
		return err
	})
	close(stop)
	group.Wait()
	r.Extra["rss_peak_mib"], r.Extra["cut_off"] = peak, float64(unanswered.Load())
	b.emit(r)
	for _, each := range probes {
		b.emit(each)
	}
	return nil
}

// probe sends one request that must be answered within 10 seconds.
func (b *bench) probe(ask request, via *http.Transport) error {
	ctx, stop := context.WithTimeout(b.ctx, 10*time.Second)
	defer stop()
	response, err := b.client.open(ctx, via, ask)
	if err == nil {
		err = response.Body.Close()
	}
	return err
}
