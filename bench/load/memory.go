package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// memory stores many objects and says how much each adds to the resident memory of the server.
func memory(b *bench) error {
	count := b.opt.count
	steps := []struct {
		k        *kind
		from, to int
	}{{configMaps, 0, count}, {configMaps, count, 5 * count}, {pods, 0, count}, {widgets, 0, count}}
	for _, step := range steps {
		name := fmt.Sprintf("memory/%s/%d", step.k.name, step.to)
		if !b.wanted(name) {
			continue
		}
		if step.k == widgets {
			if served, err := b.widgetsFor(name); err != nil {
				return err
			} else if !served {
				continue
			}
		}
		before, heap := b.resident()
		r, err := b.populate(name, step.k, "kept", step.from, step.to)
		if err != nil {
			return err
		}
		b.growth(r, before, heap)
	}
	if name := "memory/crd/100"; b.wanted(name) {
		if served, err := b.widgetsFor(name); err != nil || !served {
			return err
		}
		before, heap := b.resident()
		r := b.measure(name, 1, 5*time.Minute, 100, func(w *worker, n int) error {
			return b.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(fmt.Sprintf("g%d.bench.example.com", n)))
		})
		for n := range 100 {
			if err := b.served(fmt.Sprintf("g%d.bench.example.com", n)); err != nil {
				return err
			}
		}
		b.growth(r, before, heap)
	}
	return nil
}

// resident reads memory once the server has collected its garbage and settled: a Go server hands pages back slowly.
// heap is the live Go heap, where the server tells it.
func (b *bench) resident() (usage, float64) {
	collect := func() {
		if path, query, _ := strings.Cut(b.opt.gcPath, "?"); path != "" {
			b.client.do(b.ctx, 0, request{path: path, query: query}, nil)
		}
	}
	collect()
	time.Sleep(time.Duration(b.opt.settle * float64(time.Second)))
	now, heap := b.meter.read(), 0.0
	collect()
	if got, err := b.client.do(b.ctx, 0, request{path: "/metrics"}, new(bytes.Buffer)); err == nil {
		if _, rest, found := bytes.Cut(got.body, []byte("\ngo_memstats_heap_alloc_bytes ")); found {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			heap, _ = strconv.ParseFloat(string(line), 64)
		}
	}
	return now, heap
}

// growth adds the memory per object to the row and emits it.
func (b *bench) growth(r *Result, before usage, heapBefore float64) {
	after, heap := b.resident()
	per := 1.0 / 1024 / float64(max(r.Ops, 1))
	r.RSSBefore, r.RSSAfter, r.PSSAfter = before.totalRSS/(1<<20), after.totalRSS/(1<<20), after.totalPSS/(1<<20)
	r.Extra["rss_kib_per_object"] = (after.totalRSS - before.totalRSS) * per
	r.Extra["pss_kib_per_object"] = (after.totalPSS - before.totalPSS) * per
	for name := range after.rss {
		r.RSSAfterBy[name] = after.rss[name] / (1 << 20)
		r.Extra[name+"_rss_kib_per_object"] = (after.rss[name] - before.rss[name]) * per
	}
	if heap > 0 {
		r.Extra["live_heap_kib_per_object"] = (heap - heapBefore) * per
	}
	b.emit(r)
}
