package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// definitions makes many definitions one after another, while others read; then reads all that tells of them; then
// uses each. An operation of every row is a definition, and memory is counted from before they are made.
func definitions(b *bench) error {
	number := b.opt.definitions
	row := func(what string) string { return fmt.Sprintf("definitions/%s/%d", what, number) }
	if err := b.post(configMaps.path(b.namespace, ""), fill(configMaps.body, "read", 0, "")); err != nil {
		return err
	}
	// What the first one costs is not counted to the others.
	if served, err := b.widgetsFor("definitions"); err != nil || !served {
		return err
	}
	idle, heap := b.resident()
	before, began := b.meter.read(), time.Now()
	crew, reader, err := b.defineAll(number)
	if err != nil {
		return err
	}
	delete(reader.samples, "") // as only definitions are operations
	made := b.summarize(row("make"), before, time.Since(began), append(crew, reader))
	b.held(made)
	b.growth(made, idle, heap)

	before, began = b.meter.read(), time.Now()
	crew = b.loop(1, 10*time.Minute, 1, func(w *worker, n int) error { return b.readDocuments(w, number) })
	read := b.summarize(row("read"), before, time.Since(began), crew)
	b.share(read, number, before)
	b.growth(read, idle, heap)

	used := b.measure(row("use"), 1, 10*time.Minute, number, func(w *worker, n int) error {
		k := gadget(n).kind()
		path := k.path(b.namespace, "")
		err := b.patiently(func() error {
			_, err := b.client.do(b.ctx, 0, request{method: "POST", path: path, body: fill(k.body, "used", 0, "")}, nil)
			return err
		})
		if err != nil {
			return err
		}
		_, err = b.client.do(b.ctx, 0, request{path: path}, nil)
		return err
	})
	b.growth(used, idle, heap)
	return b.established(number)
}

// defineAll makes the definitions and waits until all are published; meanwhile another client reads an object.
func (b *bench) defineAll(number int) (crew []*worker, reader *worker, err error) {
	stop := make(chan struct{})
	var group sync.WaitGroup
	via := b.client.transport()
	group.Go(func() {
		defer via.CloseIdleConnections()
		ask := request{path: configMaps.path(b.namespace, "read")}
		reader = b.loop(1, 10*time.Minute, 1<<30, func(w *worker, n int) error {
			select {
			case <-stop:
				return errStop
			case <-time.After(25 * time.Millisecond): // few enough to cost next to nothing beside definitions
			}
			began := time.Now()
			err := b.probe(ask, via)
			w.observe("get", time.Since(began))
			return err
		})[0]
	})
	crew = b.loop(1, 10*time.Minute, number, func(w *worker, n int) error {
		_, err := b.client.do(b.ctx, 0, request{method: "POST", path: definitionsPath, body: gadget(n).definition()}, nil)
		return err
	})
	err = b.published(number)
	close(stop)
	group.Wait()
	return crew, reader, err
}

// published waits until discovery tells of all definitions, and the index of OpenAPI of all their groups.
func (b *bench) published(number int) error {
	ctx, cut := context.WithTimeout(b.ctx, 5*time.Minute)
	defer cut()
	for first := 0; first < number; first += gadgetsInGroup {
		names := []string{}
		for n := first; n < min(first+gadgetsInGroup, number); n++ {
			names = append(names, `"`+gadget(n).plural()+`"`)
		}
		group := "/apis/" + gadget(first).group() + "/v1"
		if err := b.until(ctx, request{path: group}, names...); err != nil {
			return err
		}
	}
	groups := []string{}
	for first := 0; first < number; first += gadgetsInGroup {
		groups = append(groups, `"apis/`+gadget(first).group()+`/v1"`)
	}
	return b.until(ctx, request{path: "/openapi/v3"}, groups...)
}

// until asks until all texts are in the answer, a hundred times a second at most.
func (b *bench) until(ctx context.Context, ask request, texts ...string) error {
	buffer := bytes.Buffer{}
	for {
		got, err := b.client.do(ctx, 0, ask, &buffer)
		missing := ""
		for _, text := range texts {
			if err != nil || !bytes.Contains(got.body, []byte(text)) {
				missing = text
				break
			}
		}
		if missing == "" {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s does not tell of %s: %v", ask.path, missing, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// readDocuments reads what clients read that know nothing of a server yet: discovery in both forms, the index of
// OpenAPI and each document of a group, until it has all kinds of it.
func (b *bench) readDocuments(w *worker, number int) error {
	ctx, cut := context.WithTimeout(b.ctx, 5*time.Minute)
	defer cut()
	for _, ask := range []request{{path: "/apis"}, {path: "/apis", format: "discovery"}} {
		if err := b.until(ctx, ask, gadget(number-1).group()); err != nil {
			return err
		}
	}
	if _, err := b.client.do(ctx, 0, request{path: "/openapi/v3"}, nil); err != nil {
		return err
	}
	for first := 0; first < number; first += gadgetsInGroup {
		texts := []string{}
		for n := first; n < min(first+gadgetsInGroup, number); n++ {
			texts = append(texts, "/namespaces/{namespace}/"+gadget(n).plural()+`/{name}"`)
		}
		began := time.Now()
		if err := b.until(ctx, request{path: "/openapi/v3/apis/" + gadget(first).group() + "/v1"}, texts...); err != nil {
			return err
		}
		w.observe("document", time.Since(began))
	}
	return nil
}

// established fails unless every definition says so itself.
func (b *bench) established(number int) error {
	ctx, cut := context.WithTimeout(b.ctx, time.Minute)
	defer cut()
	for n := range number {
		name := gadget(n).plural() + "." + gadget(n).group()
		if err := b.until(ctx, request{path: definitionsPath + "/" + name}, `"type":"Established"`); err != nil {
			return err
		}
	}
	return nil
}

// share makes the figures of a row those of each of so many.
func (b *bench) share(r *Result, number int, before usage) {
	if r.Ops > 0 {
		r.Ops = number
		r.account(before, b.meter.read())
	}
}

// held adds the longest time for which the server says that its loop was held, if it does (`--debug-loop-watchdog`).
func (b *bench) held(r *Result) {
	got, err := b.client.do(b.ctx, 0, request{path: "/metrics"}, new(bytes.Buffer))
	if err != nil {
		return
	}
	if _, rest, found := strings.Cut(string(got.body), "\nsteersman_loop_held_max_seconds "); found {
		line, _, _ := strings.Cut(rest, "\n")
		seconds, _ := strconv.ParseFloat(line, 64)
		r.Extra["held_max_ms"] = seconds * 1000
	}
}
