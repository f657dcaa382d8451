package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// boundPods say on which node they are.
var boundPods = &kind{"pod", pods.group, pods.many, []byte(strings.Replace(
	string(pods.body), `"spec":{`, `"spec":{"nodeName":"@NODE@",`, 1,
))}

// kubelets opens a watch of the pods of each of many nodes, as kubelets have, and changes the status of pods at an even
// rate. An operation is such a change, which one of the watches is told of.
func kubelets(b *bench) error {
	for _, number := range b.opt.watchers {
		name := fmt.Sprintf("kubelets/w%d", number)
		if !b.wanted(name) {
			continue
		}
		if err := b.kubeletsOf(name, number); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) kubeletsOf(name string, number int) error {
	ctx, stop := context.WithCancel(b.ctx)
	via := b.client.transport()
	readers := sync.WaitGroup{}
	defer func() { stop(); readers.Wait(); via.CloseIdleConnections() }()
	made := min(number, 500)
	node := func(id int) string { return fmt.Sprintf("node-%05d", id) }
	pod := func(id int) string { return fmt.Sprintf("pod-%05d", id) }
	for id := range made {
		body := bytes.ReplaceAll(fill(boundPods.body, pod(id), 0, ""), []byte("@NODE@"), []byte(node(id)))
		if err := b.post(boundPods.path(b.namespace, ""), body); err != nil {
			return err
		}
	}
	got, err := b.client.do(ctx, 0, request{path: boundPods.path(b.namespace, ""), query: "limit=1"}, new(bytes.Buffer))
	if err != nil {
		return err
	}
	since := resourceVersion(got.body)
	idle := b.meter.read()
	crew, err := b.openWatches(ctx, via, number, &readers, func(id int) request {
		query := "watch=true&allowWatchBookmarks=true&fieldSelector=spec.nodeName%3D" + node(id) + "&resourceVersion=" + since
		return request{path: "/api/v1/pods", format: "protobuf", query: query}
	})
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	before, began := b.meter.read(), time.Now()
	interval := time.Second / time.Duration(b.opt.rate)
	writers := b.loop(4, b.span(), b.opt.count, func(w *worker, n int) error {
		time.Sleep(time.Until(began.Add(time.Duration(n) * interval)))
		body := fmt.Appendf(nil, `{"status":{"message":"T@%d"}}`, time.Now().UnixNano())
		_, err := b.client.do(ctx, 0, request{
			method: "PATCH", path: boundPods.path(b.namespace, pod(n%made)) + "/status", body: body,
			content: "application/merge-patch+json",
		}, &w.buffer)
		return err
	})
	writes := 0
	for _, each := range writers {
		writes += len(each.samples[""])
	}
	last, at := delivered(crew, int64(writes))
	after := b.meter.read()
	lost := 0
	for _, each := range crew {
		if each.ended.Load() {
			lost++
		}
	}
	stop()
	readers.Wait()
	for _, each := range crew {
		for _, delay := range each.delays {
			writers[0].observe("delivery", delay)
		}
	}
	r := b.summarize(name, before, at.Sub(began), writers)
	r.P50, r.P99 = r.Extra["delivery_p50_ms"], r.Extra["delivery_p99_ms"]
	r.P95 = 0 // delivery has p50 and p99 only
	r.Ops = writes
	r.account(before, after)
	r.Extra["watchers_lost"], r.Extra["undelivered"] = float64(lost), float64(int64(writes)-last)
	r.Extra["rss_kib_per_watcher"] = (before.totalRSS - idle.totalRSS) / 1024 / float64(number)
	b.emit(r)
	return nil
}
