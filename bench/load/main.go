// Command load drives a Kubernetes API server over loopback and accounts what each operation costs it.
//
//	load WORKLOAD --url URL --token T --server-pids etcd=12,kube-apiserver=13 --json out.json
//	load compare A.json B.json
//
// See ../README.md for the work loads and for how to read the figures.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the flags shared by all work loads.
type options struct {
	url, ca, token, cert, key       string
	stormToken, systemToken         string
	command, readyURL, gcPath       string
	out                             string
	pids                            string
	http, connections, runs, rate   int
	count, clients, listed          int
	definitions                     int
	seconds, settle                 float64
	concurrency, sizes, watchers    []int
	formats                         []string
	clean                           bool
	concurrencyText, sizesText      string
	watchersText, formatsText, only string
}

// workloads maps each verb to its function and to what it does.
var workloads = map[string]struct {
	run  func(*bench) error
	help string
}{
	"ready":       {ready, "start --command, time until /readyz answers 200, then idle memory"},
	"get":         {get, "GET one Pod"},
	"list":        {list, "LIST ConfigMaps and Pods: cached, consistent, paged"},
	"create":      {create, "POST ConfigMaps, Pods, custom resources"},
	"bulk":        {bulk, "POST --count ConfigMaps, then as many Pods: how long all take"},
	"compaction":  {compaction, "even writes and reads while the server compacts a long history"},
	"admission":   {admission, "POST ConfigMaps with webhooks and policies"},
	"aggregated":  {aggregated, "GET through an aggregated server"},
	"update":      {update, "PUT, merge PATCH, server-side apply, status PUT"},
	"watch":       {watch, "many watchers, one writer"},
	"kubelets":    {kubelets, "a watch of the pods of each node, pods change at an even rate"},
	"memory":      {memory, "memory per stored object and per CRD"},
	"mixed":       {mixed, "70% get/list, 20% status update, 10% create/delete"},
	"restart":     {restart, "start --command anew with many CRDs and objects stored, on SIGHUP"},
	"definitions": {definitions, "make many CRDs, read discovery and OpenAPI, use each"},
	"storm":       {storm, "overload with lists; probe /readyz and a system request"},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return overview()
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "compare":
		if len(rest) != 2 {
			return fmt.Errorf("usage: load compare A.json B.json")
		}
		return compare(rest[0], rest[1])
	case "stub":
		return stub()
	default:
		workload, found := workloads[verb]
		if !found {
			return overview()
		}
		opt, err := parse(verb, rest)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		b, err := newBench(ctx, verb, opt)
		if err != nil {
			return err
		}
		if err := workload.run(b); err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
		return b.finish()
	}
}

func overview() error {
	verbs := []string{}
	for verb, each := range workloads {
		verbs = append(verbs, fmt.Sprintf("  %-11s %s", verb, each.help))
	}
	slices.Sort(verbs)
	return fmt.Errorf("usage: load WORKLOAD [flags] | load compare A.json B.json | load stub\n%s", strings.Join(verbs, "\n"))
}

func parse(verb string, args []string) (*options, error) {
	opt := &options{}
	flags := flag.NewFlagSet("load "+verb, flag.ExitOnError)
	flags.StringVar(&opt.url, "url", "", "server, loopback only, e.g. https://127.0.0.1:6443")
	flags.StringVar(&opt.ca, "ca", "", "CA file; without it the server certificate is not verified")
	flags.StringVar(&opt.token, "token", "", "bearer token of an administrator")
	flags.StringVar(&opt.cert, "cert", "", "client certificate instead of --token")
	flags.StringVar(&opt.key, "key", "", "key of --cert")
	flags.StringVar(&opt.pids, "server-pids", "", "processes to account, children included: 12,13 or etcd=12,server=13")
	flags.IntVar(&opt.http, "http", 2, "HTTP version: 1 or 2")
	flags.IntVar(&opt.connections, "connections", 1, "HTTP/2: connections to spread the workers over")
	flags.Float64Var(&opt.seconds, "seconds", 5, "length of each timed row")
	flags.StringVar(&opt.concurrencyText, "concurrency", "", "parallel requests, e.g. 1,16,64 (default for get, create; 1 for list; 64 for bulk; else 16)")
	flags.StringVar(&opt.sizesText, "sizes", "1000,10000", "list: objects in the namespace")
	flags.StringVar(&opt.watchersText, "watchers", "100,500,1000", "watch, kubelets: number of watchers (kubelets: 5000)")
	flags.IntVar(&opt.rate, "rate", 100, "kubelets: changes a second; compaction: writes, and as many reads, a second")
	flags.StringVar(&opt.formatsText, "formats", "json,protobuf", "get, list, watch: answer formats (list also knows json+gzip)")
	flags.StringVar(&opt.only, "only", "", "run only the rows whose name contains one of these texts, separated by commas")
	flags.IntVar(&opt.count, "count", 10000, "create: most objects per row; bulk: objects per row; watch: most writes; memory: objects per step; restart: objects stored; compaction: revisions overwritten")
	flags.IntVar(&opt.definitions, "definitions", 500, "definitions, restart: how many CRDs")
	flags.IntVar(&opt.clients, "clients", 2000, "storm: concurrent lists")
	flags.IntVar(&opt.listed, "listed", 1000, "storm: objects in each list, of 1.5 KB")
	flags.StringVar(&opt.stormToken, "storm-token", "", "storm: token of an ordinary user (administrators are exempt from fairness)")
	flags.StringVar(&opt.systemToken, "system-token", "", "storm: token of the node user system:node:node-a")
	flags.StringVar(&opt.command, "command", "", "ready, restart: command line of the server")
	flags.StringVar(&opt.readyURL, "ready-url", "", "ready: server URL; without it the command prints a JSON line with url and pids")
	flags.IntVar(&opt.runs, "runs", 3, "ready, restart: number of starts")
	flags.Float64Var(&opt.settle, "settle", 5, "ready, memory, definitions: seconds to wait before reading memory; compaction: how long to go on")
	flags.StringVar(&opt.gcPath, "gc-path", "", "memory, definitions: GET this before reading memory, e.g. /debug/pprof/heap?gc=1")
	flags.BoolVar(&opt.clean, "clean", false, "delete the objects made, at the end")
	flags.StringVar(&opt.out, "json", "", "write results here (rows of the same name are replaced, others kept)")
	flags.Parse(args)
	if opt.concurrencyText == "" {
		opt.concurrencyText = "16"
		switch verb {
		case "get", "create", "admission", "aggregated":
			opt.concurrencyText = "1,16,64"
		case "bulk":
			opt.concurrencyText = "64"
		case "list":
			opt.concurrencyText = "1"
		}
	}
	if verb == "kubelets" && opt.watchersText == "100,500,1000" {
		opt.watchersText = "5000"
	}
	opt.formats = strings.Split(opt.formatsText, ",")
	if verb == "list" && opt.formatsText == "json,protobuf" {
		opt.formats = []string{"json", "json+gzip", "protobuf"}
	}
	for text, into := range map[string]*[]int{
		opt.concurrencyText: &opt.concurrency, opt.sizesText: &opt.sizes, opt.watchersText: &opt.watchers,
	} {
		for each := range strings.SplitSeq(text, ",") {
			number, err := strconv.Atoi(each)
			if err != nil || number < 1 || number > 100000 {
				return nil, fmt.Errorf("%q: want numbers from 1 to 100000", text)
			}
			*into = append(*into, number)
		}
	}
	// Every loop is bounded in time and in number.
	opt.seconds = min(max(opt.seconds, 0.1), 600)
	opt.settle = min(max(opt.settle, 0), 600)
	opt.count = min(max(opt.count, 1), 100000)
	opt.clients = min(max(opt.clients, 1), 10000)
	opt.listed = min(max(opt.listed, 1), 100000)
	opt.rate = min(max(opt.rate, 1), 10000)
	opt.definitions = min(max(opt.definitions, 1), 10000)
	opt.runs = min(max(opt.runs, 1), 100)
	return opt, nil
}

// stub serves one fixed 3 KB answer, so that the cost and the limit of the generator itself can be measured.
func stub() error {
	body := []byte(`{"kind":"Pod","metadata":{"resourceVersion":"1"},"filler":"` + strings.Repeat("x", 3000) + `"}`)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	json.NewEncoder(os.Stdout).Encode(map[string]any{"url": server.URL, "token": "none", "pids": map[string]int{"stub": os.Getpid()}})
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
	select {
	case <-stopped:
	case <-time.After(time.Hour):
	}
	return nil
}
