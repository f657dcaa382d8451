package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"time"
)

// restart starts the server anew with many definitions and objects stored; an operation is one start, its latency the
// time that the command tells until the server was ready. What keeps its data for it goes on meanwhile, and its
// processor time counts.
func restart(b *bench) error {
	command, output, end, err := b.launch()
	if err != nil {
		return err
	}
	defer end()
	lines := bufio.NewReader(output)
	if _, err := b.reach(lines); err != nil {
		return err
	}
	if err := b.post("/api/v1/namespaces", fill(namespaceBody, b.namespace, 0, "")); err != nil {
		return err
	}
	if err := b.stock(); err != nil {
		return err
	}
	var times []time.Duration
	first := b.meter.read()
	total := &Result{
		Name: fmt.Sprintf("restart/%d/%d", b.opt.definitions, b.opt.count), RSSBefore: first.totalRSS / (1 << 20),
		ServerCPUBy: map[string]float64{}, RSSAfterBy: map[string]float64{},
	}
	began, share := time.Now(), 1/float64(b.opt.runs)
	for range b.opt.runs {
		before, old, asked := b.meter.read(), b.meter.roots, time.Now()
		if err := command.Process.Signal(syscall.SIGHUP); err != nil {
			return err
		}
		server, err := b.reach(lines)
		if err != nil {
			return err
		}
		up := b.meter.read()
		for pid, name := range b.meter.roots {
			cpu := up.cpu[name]
			if _, kept := old[pid]; kept {
				cpu -= before.cpu[name]
			}
			total.ServerCPU += cpu * 1e6 * share
			total.ServerCPUBy[name] += cpu * 1e6 * share
		}
		// What the old server spends on its end counts as another's.
		others := up.busy - before.busy - up.own + before.own
		for pid, name := range b.meter.roots {
			if _, kept := old[pid]; !kept {
				others -= up.cpu[name]
			}
		}
		total.OtherCores += max(0, others) / time.Since(asked).Seconds() * share
		total.RSSAfter, total.PSSAfter, total.Processes = up.totalRSS/(1<<20), up.totalPSS/(1<<20), up.processes
		times = append(times, time.Duration(server.ReadySeconds*float64(time.Second)))
	}
	slices.Sort(times)
	total.Ops, total.Seconds = len(times), time.Since(began).Seconds()
	total.P50, total.P95, total.P99 = quantile(times, .5), quantile(times, .95), quantile(times, .99)
	b.emit(total)
	return nil
}

// stock stores the definitions, and the objects spread over them.
func (b *bench) stock() error {
	number := b.opt.definitions
	made := b.measure("", 1, 10*time.Minute, number, func(w *worker, n int) error {
		_, err := b.client.do(b.ctx, 0, request{method: "POST", path: definitionsPath, body: gadget(n).definition()}, nil)
		return err
	})
	if made.Ops != number {
		return fmt.Errorf("%d of %d definitions: %v", made.Ops, number, made.Errors)
	}
	if err := b.published(number); err != nil {
		return err
	}
	stored := b.measure("", 16, 10*time.Minute, b.opt.count, func(w *worker, n int) error {
		k := gadget(n % number).kind()
		body := fill(k.body, fmt.Sprintf("stored-%d", n), int64(n%20), "")
		return b.patiently(func() error {
			_, err := b.client.do(b.ctx, w.id, request{method: "POST", path: k.path(b.namespace, ""), body: body}, nil)
			return err
		})
	})
	if stored.Ops != b.opt.count {
		return fmt.Errorf("%d of %d objects: %v", stored.Ops, b.opt.count, stored.Errors)
	}
	return nil
}

// patiently tries again while the server answers 429: the storage of a new kind may not be ready yet.
func (b *bench) patiently(ask func() error) error {
	for try := 0; ; try++ {
		err := ask()
		var status *statusError
		if try == 100 || !errors.As(err, &status) || status.code != http.StatusTooManyRequests {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}
