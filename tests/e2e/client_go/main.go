// Command client_go uses an API server as programs in Go do: informers of every sort, a small controller, a manager of
// controller-runtime, leader election, watches that resume, lists in pages, discovery. Meanwhile writers change what is
// there at random. In the end what every informer knows is compared with what the server lists.
//
// It prints one JSON document: each check with what it found, and counts of what was done. It exits with 1 if a check
// failed. With --outages the server may be killed and started again while "running" has been said on stderr.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// patience is how long a check waits for what must come.
const patience = 30 * time.Second

type check struct {
	name string
	run  func(context.Context, *world) (string, error)
	// outlasts says that it goes on when the server is gone for a while.
	outlasts bool
}

var checks = []check{
	{"conflicts are retried", conflictsAreRetried, false},
	{"a leader is elected, and followed by another", leadersFollow, false},
	{"a leader stays the leader", leaderStays, true},
	{"a watch is resumed and misses nothing", watchIsResumed, true},
	{"a condition is waited for", conditionIsWaitedFor, false},
	{"a list comes in pages", listComesInPages, false},
	{"discovery and the RESTMapper agree", discoveryAgrees, false},
	{"OpenAPI describes every group version", openAPIDescribes, false},
	{"events are counted", eventsAreCounted, false},
	{"subresources work", subresourcesWork, false},
	{"a controller with a work queue gets there", controllerGetsThere, true},
	{"a manager of controller-runtime gets there", managerGetsThere, true},
}

type finding struct {
	Passed  bool    `json:"passed"`
	Detail  string  `json:"detail"`
	Seconds float64 `json:"seconds"`
}

type report struct {
	mutex  sync.Mutex
	Checks map[string]finding `json:"checks"`
	Counts map[string]int     `json:"counts"`
}

func (r *report) add(name string, began time.Time, detail string, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err != nil {
		detail = err.Error()
	}
	r.Checks[name] = finding{err == nil, detail, time.Since(began).Round(time.Millisecond).Seconds()}
}

func (r *report) count(what string, number int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.Counts[what] += number
}

func (r *report) failed() bool {
	for _, each := range r.Checks {
		if !each.Passed {
			return true
		}
	}
	return false
}

func main() {
	// controller-runtime has put a flag of its own among the default ones.
	flags := flag.NewFlagSet("client_go", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the server")
	prefix := flags.String("prefix", "go", "what the names of the namespaces begin with")
	seconds := flags.Float64("seconds", 8, "how long is written at random")
	seed := flags.Int64("seed", 1, "of the random writes")
	faults := flags.Bool("faults", false, "meet Faults of a cluster, and do nothing else")
	outages := flags.Bool("outages", false, "the server may be gone for a while")
	if err := flags.Parse(os.Args[1:]); err != nil {
		panic(err)
	}
	log.SetLogger(klog.Background())

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out := &report{Checks: map[string]finding{}, Counts: map[string]int{}}
	err := error(nil)
	if *faults {
		err = meetFaults(ctx, *kubeconfig, out)
	} else {
		err = run(ctx, *kubeconfig, *prefix, *seconds, *seed, *outages, out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client_go:", err)
		os.Exit(2)
	}
	out.mutex.Lock()
	defer out.mutex.Unlock()
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(out); err != nil {
		panic(err)
	}
	if out.failed() {
		os.Exit(1)
	}
}

func run(
	ctx context.Context, kubeconfig, prefix string, seconds float64, seed int64, outages bool, out *report,
) error {
	w, err := connect(ctx, kubeconfig, prefix, outages, out)
	if err != nil {
		return err
	}
	followers, err := w.follow(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "running")
	var group sync.WaitGroup
	for _, each := range checks {
		if outages && !each.outlasts {
			continue
		}
		group.Go(func() {
			began := time.Now()
			detail, err := each.run(ctx, w)
			out.add(each.name, began, detail, err)
		})
	}
	began := time.Now()
	out.add("random writes are answered as they should be", began, "", w.writeAtRandom(ctx, seconds, seed))
	group.Wait()
	for _, each := range followers {
		group.Go(func() {
			began := time.Now()
			detail, err := each.converge(ctx)
			out.add("informer: "+each.name, began, detail, err)
			out.count("events told", each.told())
		})
	}
	group.Wait()
	out.count("informers", len(followers))
	return nil
}
