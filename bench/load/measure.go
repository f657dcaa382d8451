package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Result is one row of a measurement.
type Result struct {
	Name            string             `json:"name"`
	Ops             int                `json:"ops"`
	Errors          map[string]int     `json:"errors,omitempty"`
	Seconds         float64            `json:"seconds"`
	OpsPerSecond    float64            `json:"ops_per_second"`
	P50             float64            `json:"p50_ms"`
	P95             float64            `json:"p95_ms"`
	P99             float64            `json:"p99_ms"`
	ServerCPU       float64            `json:"server_cpu_us_per_op"`
	ServerCPUBy     map[string]float64 `json:"server_cpu_us_per_op_by_process,omitempty"`
	GeneratorCPU    float64            `json:"generator_cpu_us_per_op"`
	ServerCores     float64            `json:"server_cores"`
	GeneratorCores  float64            `json:"generator_cores"`
	OtherCores      float64            `json:"other_cores"` // what the rest of the machine used: noise
	RSSBefore       float64            `json:"rss_before_mib"`
	RSSAfter        float64            `json:"rss_after_mib"`
	RSSAfterBy      map[string]float64 `json:"rss_after_mib_by_process,omitempty"`
	PSSAfter        float64            `json:"pss_after_mib"`
	Processes       int                `json:"processes"`
	MegabytesSecond float64            `json:"mb_per_second,omitempty"`
	Extra           map[string]float64 `json:"extra,omitempty"`
}

// report is the file that --json writes.
type report struct {
	HTTP    int       `json:"http"`
	Cores   int       `json:"cores"`
	When    string    `json:"when"`
	Results []*Result `json:"results"`
}

type bench struct {
	ctx       context.Context
	opt       *options
	client    *client
	meter     *meter
	namespace string
	results   []*Result
}

// worker is one closed loop: it sends its next request when the last one has been answered.
type worker struct {
	id      int
	rand    *rand.Rand
	buffer  bytes.Buffer
	bytes   int64
	errors  map[string]int
	samples map[string][]time.Duration
}

// errStop ends a worker without an error.
var errStop = errors.New("stop")

// buffers are the shared scratch space for answers that nobody keeps.
var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

func newBench(ctx context.Context, verb string, opt *options) (*bench, error) {
	b := &bench{ctx: ctx, opt: opt, namespace: fmt.Sprintf("load-%s-%d", verb, time.Now().UnixMilli())}
	var err error
	if b.meter, err = newMeter(opt.pids); err != nil || verb == "ready" || verb == "restart" {
		return b, err
	}
	if b.client, err = newClient(opt, opt.url); err != nil {
		return nil, err
	}
	return b, b.post("/api/v1/namespaces", fill(namespaceBody, b.namespace, 0, ""))
}

// wanted says whether --only selects the row: one of its texts, between commas, is in the name.
func (b *bench) wanted(name string) bool {
	return slices.ContainsFunc(strings.Split(b.opt.only, ","), func(text string) bool { return strings.Contains(name, text) })
}

// span is the length of a timed row.
func (b *bench) span() time.Duration { return time.Duration(b.opt.seconds * float64(time.Second)) }

// observe adds a latency under a name; "" is the operation itself.
func (w *worker) observe(name string, took time.Duration) {
	w.samples[name] = append(w.samples[name], took)
}

func (w *worker) fail(err error) {
	text := err.Error()
	var status *statusError
	if errors.As(err, &status) {
		text = fmt.Sprintf("HTTP %d", status.code)
	}
	w.errors[text[:min(len(text), 80)]]++
}

// loop runs op in parallel until the time or the number is used up, and returns the workers' notes.
func (b *bench) loop(workers int, span time.Duration, most int, op func(w *worker, n int) error) []*worker {
	crew := make([]*worker, workers)
	end := time.Now().Add(span)
	var next atomic.Int64
	var group sync.WaitGroup
	for id := range crew {
		w := &worker{id: id, rand: rand.New(rand.NewPCG(uint64(id), 1)), errors: map[string]int{}, samples: map[string][]time.Duration{}}
		crew[id] = w
		group.Go(func() {
			for b.ctx.Err() == nil {
				n, began := int(next.Add(1)), time.Now()
				if n > most || began.After(end) {
					return
				}
				if err := op(w, n-1); err == errStop {
					return
				} else if err != nil {
					w.fail(err)
					time.Sleep(time.Millisecond)
					continue
				}
				w.observe("", time.Since(began))
			}
		})
	}
	group.Wait()
	return crew
}

// measure runs a row and accounts it; the caller may add to the result before emit.
func (b *bench) measure(name string, workers int, span time.Duration, most int, op func(w *worker, n int) error) *Result {
	before, began := b.meter.read(), time.Now()
	crew := b.loop(workers, span, most, op)
	return b.summarize(name, before, time.Since(began), crew)
}

// warm runs op for a moment without recording it, so that connections and caches are there.
func (b *bench) warm(workers int, op func(w *worker, n int) error) {
	b.loop(workers, min(b.span(), 500*time.Millisecond), 1<<30, op)
}

func (b *bench) summarize(name string, before usage, took time.Duration, crew []*worker) *Result {
	after := b.meter.read()
	r := &Result{Name: name, Seconds: took.Seconds(), Errors: map[string]int{}, Extra: map[string]float64{}, ServerCPUBy: map[string]float64{}, RSSAfterBy: map[string]float64{}}
	samples, bytes := map[string][]time.Duration{}, int64(0)
	for _, w := range crew {
		for key, each := range w.samples {
			samples[key] = append(samples[key], each...)
		}
		for key, number := range w.errors {
			r.Errors[key] += number
		}
		bytes += w.bytes
	}
	r.Ops = len(samples[""])
	for key, each := range samples {
		slices.Sort(each)
		if key == "" {
			r.P50, r.P95, r.P99 = quantile(each, .5), quantile(each, .95), quantile(each, .99)
		} else {
			r.Extra[key+"_p50_ms"], r.Extra[key+"_p99_ms"], r.Extra[key+"_ops"] = quantile(each, .5), quantile(each, .99), float64(len(each))
		}
	}
	r.account(before, after)
	r.MegabytesSecond = float64(bytes) / 1e6 / r.Seconds
	return r
}

// account sets the figures that are shares of r.Ops, which the caller has set.
func (r *Result) account(before, after usage) {
	perOp := 1e6 / float64(max(r.Ops, 1))
	r.OpsPerSecond = float64(r.Ops) / r.Seconds
	r.ServerCPU = (after.totalCPU - before.totalCPU) * perOp
	for name := range after.cpu {
		r.ServerCPUBy[name] = (after.cpu[name] - before.cpu[name]) * perOp
		r.RSSAfterBy[name] = after.rss[name] / (1 << 20)
	}
	r.GeneratorCPU = (after.own - before.own) * perOp
	r.ServerCores = (after.totalCPU - before.totalCPU) / r.Seconds
	r.GeneratorCores = (after.own - before.own) / r.Seconds
	r.OtherCores = max(0, (after.busy-before.busy)/r.Seconds-r.ServerCores-r.GeneratorCores)
	r.RSSBefore, r.RSSAfter, r.PSSAfter = before.totalRSS/(1<<20), after.totalRSS/(1<<20), after.totalPSS/(1<<20)
	r.Processes = after.processes
}

// quantile of a sorted slice, in milliseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[int(q*float64(len(sorted)-1)+0.5)]) / 1e6
}

// emit prints the row and keeps it for the file.
func (b *bench) emit(r *Result) {
	if len(b.results) == 0 {
		fmt.Printf("%-34s %9s %8s %8s %8s %10s %8s %13s %5s\n", "row", "ops/s", "p50 ms", "p95 ms", "p99 ms", "srv us/op", "gen us", "rss MiB", "other")
	}
	b.results = append(b.results, r)
	fmt.Printf("%-34s %9.1f %8.2f %8.2f %8.2f %10.1f %8.1f %6.0f→%-6.0f %5.2f", r.Name, r.OpsPerSecond, r.P50, r.P95, r.P99, r.ServerCPU, r.GeneratorCPU, r.RSSBefore, r.RSSAfter, r.OtherCores)
	for _, name := range sortedKeys(r.ServerCPUBy) {
		if len(r.ServerCPUBy) > 1 {
			fmt.Printf("  %s %.0fus", name, r.ServerCPUBy[name])
		}
	}
	for _, name := range sortedKeys(r.Extra) {
		fmt.Printf("  %s=%.4g", name, r.Extra[name])
	}
	for _, name := range sortedKeys(r.Errors) {
		fmt.Printf("  ERROR %s x%d", name, r.Errors[name])
	}
	fmt.Println()
}

func sortedKeys[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// finish deletes what was made if asked to, and merges the rows into the file.
func (b *bench) finish() error {
	if b.opt.clean && b.client != nil {
		b.cleanUp()
	}
	if b.opt.out == "" {
		return nil
	}
	file := report{Results: []*Result{}}
	if raw, err := os.ReadFile(b.opt.out); err == nil {
		if err := json.Unmarshal(raw, &file); err != nil {
			return fmt.Errorf("%s: %w", b.opt.out, err)
		}
	}
	file.HTTP, file.Cores, file.When = b.opt.http, runtime.NumCPU(), time.Now().UTC().Format(time.DateTime)
	for _, r := range b.results {
		if at := slices.IndexFunc(file.Results, func(old *Result) bool { return old.Name == r.Name }); at >= 0 {
			file.Results[at] = r
		} else {
			file.Results = append(file.Results, r)
		}
	}
	raw, err := json.MarshalIndent(file, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.opt.out, append(raw, '\n'), 0o644)
}
