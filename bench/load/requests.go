package main

import (
	"fmt"
	"net/url"
	"time"
)

// get reads one Pod: "pod" asks for the latest (a quorum read of the store), "pod-cached" accepts the cache.
func get(b *bench) error {
	if _, err := b.populate("", pods, "one", 0, 1); err != nil {
		return err
	}
	for _, query := range []string{"", "resourceVersion=0"} {
		for _, format := range b.opt.formats {
			for _, workers := range b.opt.concurrency {
				name := fmt.Sprintf("get/pod%s/%s/c%d", map[bool]string{true: "-cached"}[query != ""], format, workers)
				if !b.wanted(name) {
					continue
				}
				ask := request{path: pods.path(b.namespace, "one-0"), query: query, format: format}
				op := func(w *worker, n int) error {
					got, err := b.client.do(b.ctx, w.id, ask, nil)
					w.bytes += got.size
					return err
				}
				b.warm(workers, op)
				b.emit(b.measure(name, workers, b.span(), 1<<30, op))
			}
		}
	}
	return nil
}

// list reads whole namespaces, one list at a time; a paged walk over all pages counts as one operation.
func list(b *bench) error {
	home := b.namespace
	defer func() { b.namespace = home }()
	for _, size := range b.opt.sizes {
		b.namespace = fmt.Sprintf("%s-%d", home, size)
		if err := b.post("/api/v1/namespaces", fill(namespaceBody, b.namespace, 0, "")); err != nil {
			return err
		}
		for _, k := range []*kind{configMaps, pods, widgets} {
			if err := b.listAll(k, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// listAll fills the namespace with objects of a kind and runs the rows of listing them.
func (b *bench) listAll(k *kind, size int) error {
	filled := false
	for _, mode := range []string{"cached", "consistent", "paged"} {
		for _, format := range b.opt.formats {
			name := fmt.Sprintf("list/%s/%d/%s/%s", k.name, size, mode, format)
			if !b.wanted(name) || mode == "paged" && format == "json+gzip" || k == widgets && format == "protobuf" {
				continue
			}
			if k == widgets && !filled {
				if served, err := b.widgetsFor("list/widget"); err != nil || !served {
					return err
				}
			}
			if !filled {
				if _, err := b.populate("", k, "item", 0, size); err != nil {
					return err
				}
				filled = true
			}
			ask := request{path: k.path(b.namespace, ""), format: format}
			op := func(w *worker, n int) error {
				got, err := b.client.do(b.ctx, w.id, ask, nil)
				w.bytes += got.size
				w.observe("first_byte", got.firstByte)
				return err
			}
			switch mode {
			case "cached":
				ask.query = "resourceVersion=0"
			case "paged":
				op = func(w *worker, n int) error { return b.walk(w, ask, size) }
			}
			b.loop(1, time.Minute, 1, op)
			// At least three lists, however slow they are.
			end := time.Now().Add(b.span())
			r := b.measure(name, b.opt.concurrency[0], time.Minute, 1<<30, func(w *worker, n int) error {
				if n >= 3 && time.Now().After(end) {
					return errStop
				}
				return op(w, n)
			})
			r.Extra["mb_per_list"] = r.MegabytesSecond * r.Seconds / float64(max(r.Ops, 1))
			b.emit(r)
		}
	}
	return nil
}

// walk lists in pages of 500.
func (b *bench) walk(w *worker, ask request, size int) error {
	for page, token := 0, ""; page <= size/500+1; page++ {
		ask.query = "limit=500"
		if token != "" {
			ask.query += "&continue=" + url.QueryEscape(token)
		}
		began := time.Now()
		got, err := b.client.do(b.ctx, w.id, ask, &w.buffer)
		if err != nil {
			return err
		}
		w.bytes += got.size
		w.observe("page", time.Since(began))
		if token = continueToken(got.body, ask.format); token == "" {
			return nil
		}
	}
	return fmt.Errorf("more pages than objects")
}

// create posts new objects of three kinds.
func create(b *bench) error {
	for _, k := range []*kind{configMaps, pods, widgets} {
		if err := b.createAll(k); err != nil {
			return err
		}
	}
	return nil
}

// createAll runs the rows of creating objects of a kind; custom resources are defined once a row is about them.
func (b *bench) createAll(k *kind) error {
	defined := k != widgets
	for _, workers := range b.opt.concurrency {
		name := fmt.Sprintf("create/%s/c%d", k.name, workers)
		if !b.wanted(name) {
			continue
		}
		if !defined {
			if served, err := b.widgetsFor("create/widget"); err != nil || !served {
				return err
			}
			defined = true
		}
		b.warm(workers, b.creates(k, fmt.Sprintf("warm%d", workers)))
		b.emit(b.measure(name, workers, b.span(), b.opt.count, b.creates(k, fmt.Sprintf("c%d", workers))))
	}
	return nil
}

// update changes existing objects, each worker its own one, so that there are no conflicts.
func update(b *bench) error {
	for _, k := range []*kind{configMaps, pods, widgets} {
		if err := b.updateAll(k); err != nil {
			return err
		}
	}
	return nil
}

// updateAll runs the rows of changing objects of a kind; the objects are made once a row is about them.
func (b *bench) updateAll(k *kind) error {
	made := false
	for _, verb := range []string{"put", "merge", "apply", "status"} {
		if verb == "status" && k == configMaps {
			continue
		}
		for _, workers := range b.opt.concurrency {
			name := fmt.Sprintf("update/%s/%s/c%d", k.name, verb, workers)
			if !b.wanted(name) {
				continue
			}
			if !made {
				if k == widgets {
					if served, err := b.widgetsFor("update/widget"); err != nil || !served {
						return err
					}
				}
				if _, err := b.populate("", k, "mine", 0, 64); err != nil {
					return err
				}
				made = true
			}
			op, err := b.updater(k, verb, min(workers, 64))
			if err != nil {
				return err
			}
			b.warm(min(workers, 64), op)
			b.emit(b.measure(name, min(workers, 64), b.span(), 1<<30, op))
		}
	}
	return nil
}

// updater makes the operation that changes the worker's own object once.
func (b *bench) updater(k *kind, verb string, workers int) (func(w *worker, n int) error, error) {
	asks, versions := make([]request, workers), make([]string, workers)
	for id := range asks {
		name := fmt.Sprintf("mine-%d", id)
		ask := request{method: "PATCH", path: k.path(b.namespace, name)}
		switch verb {
		case "merge":
			ask.content = "application/merge-patch+json"
			ask.body = []byte(`{"metadata":{"annotations":{"bench.example.com/tick":"@TICK@"}}}`)
		case "apply":
			ask.content, ask.query = "application/apply-patch+yaml", "fieldManager=load-apply&force=true"
			ask.body = fill(k.body, name, -1, "")
		default:
			// PUT sends back the object as read. Built-in kinds take it without a version, custom resources do not.
			ask.method = "PUT"
			body, err := b.fetch(ask.path, func(object map[string]any) {
				metadata := object["metadata"].(map[string]any)
				versions[id] = metadata["resourceVersion"].(string)
				metadata["resourceVersion"] = "@RV@"
				metadata["annotations"] = map[string]any{"bench.example.com/tick": "@TICK@"}
				if verb == "status" {
					object["status"] = map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True", "message": "tick @TICK@"}}}
				}
			})
			if err != nil {
				return nil, err
			}
			ask.body = body
			if verb == "status" {
				ask.path += "/status"
			}
		}
		asks[id] = ask
	}
	return func(w *worker, n int) error {
		ask := asks[w.id]
		ask.body = fill(ask.body, "", time.Now().UnixNano(), versions[w.id])
		got, err := b.client.do(b.ctx, w.id, ask, &w.buffer)
		if err == nil && ask.method == "PUT" {
			versions[w.id] = resourceVersion(got.body)
		}
		return err
	}, nil
}

// creates makes objects of a kind, one with each call, named after prefix and the number of the call.
func (b *bench) creates(k *kind, prefix string) func(w *worker, n int) error {
	path := k.path(b.namespace, "")
	return func(w *worker, n int) error {
		body := fill(k.body, fmt.Sprintf("%s-%d", prefix, n), int64(n%20), "")
		_, err := b.client.do(b.ctx, w.id, request{method: "POST", path: path, body: body}, nil)
		return err
	}
}
