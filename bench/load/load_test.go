package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// server takes every object, and answers a CustomResourceDefinition with a code; asked are the paths of its POSTs.
type server struct {
	*httptest.Server
	mutex sync.Mutex
	asked []string
}

func newServer(t *testing.T, definitions int) *server {
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			s.mutex.Lock()
			s.asked = append(s.asked, r.URL.Path)
			s.mutex.Unlock()
			if strings.HasSuffix(r.URL.Path, "/customresourcedefinitions") {
				w.WriteHeader(definitions)
			}
		}
		w.Write([]byte(`{"metadata":{"resourceVersion":"1"}}`))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) askedFor(resource string) bool {
	return slices.ContainsFunc(s.asked, func(path string) bool { return strings.HasSuffix(path, "/"+resource) })
}

// rows runs a workload for a moment and returns the names of its rows.
func rows(t *testing.T, s *server, verb string, flags ...string) ([]string, error) {
	t.Helper()
	flags = append([]string{"--url=" + s.URL, "--seconds=0.1", "--count=2", "--settle=0", "--concurrency=1", "--sizes=2"}, flags...)
	opt, err := parse(verb, flags)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBench(context.Background(), verb, opt)
	if err != nil {
		t.Fatal(err)
	}
	err = workloads[verb].run(b)
	names := []string{}
	for _, r := range b.results {
		names = append(names, r.Name)
		if len(r.Errors) > 0 {
			t.Errorf("%s: %v", r.Name, r.Errors)
		}
	}
	return names, err
}

func TestRowsOfCustomResourcesAreLeftOutWhereTheServerHasNone(t *testing.T) {
	for verb, want := range map[string][]string{
		"create": {"create/configmap/c1", "create/pod/c1"},
		"update": {
			"update/configmap/put/c1", "update/configmap/merge/c1", "update/configmap/apply/c1",
			"update/pod/put/c1", "update/pod/merge/c1", "update/pod/apply/c1", "update/pod/status/c1",
		},
		"memory":      {"memory/configmap/2", "memory/configmap/10", "memory/pod/2"},
		"mixed":       {},
		"definitions": {},
	} {
		for _, code := range []int{http.StatusNotFound, http.StatusNotImplemented} {
			got, err := rows(t, newServer(t, code), verb)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s where definitions are answered with %d: %v, %v", verb, code, got, err)
			}
		}
	}
}

func TestARefusedDefinitionEndsTheWorkload(t *testing.T) {
	if got, err := rows(t, newServer(t, http.StatusForbidden), "create"); err == nil {
		t.Errorf("rows %v and no error", got)
	}
}

func TestOnlySelectsRowsByTexts(t *testing.T) {
	for _, each := range []struct {
		verb, only string
		want       []string
		unasked    string
	}{
		{"create", "create/configmap/c1", []string{"create/configmap/c1"}, "customresourcedefinitions"},
		{"create", "pod,widget", []string{"create/pod/c1", "create/widget/c1"}, "configmaps"},
		{"update", "put", []string{"update/configmap/put/c1", "update/pod/put/c1", "update/widget/put/c1"}, ""},
		{"update", "update/configmap/put/", []string{"update/configmap/put/c1"}, "pods"},
		{"list", "list/pod/2/cached/json", []string{"list/pod/2/cached/json", "list/pod/2/cached/json+gzip"}, "configmaps"},
		{"list", "no such row", []string{}, "pods"},
	} {
		s := newServer(t, http.StatusCreated)
		got, err := rows(t, s, each.verb, "--only="+each.only)
		if err != nil || !slices.Equal(got, each.want) {
			t.Errorf("%s --only=%s: %v, %v", each.verb, each.only, got, err)
		}
		if each.unasked != "" && s.askedFor(each.unasked) {
			t.Errorf("%s --only=%s made %s", each.verb, each.only, each.unasked)
		}
	}
}

func TestAReportHasAListOfRowsEvenWithNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	b := &bench{opt: &options{out: path}}
	if err := b.finish(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file := struct{ Results []json.RawMessage }{}
	if err := json.Unmarshal(raw, &file); err != nil || file.Results == nil {
		t.Errorf("%s: %v", raw, err)
	}
}

func TestOnlyLoopbackAddressesAreTaken(t *testing.T) {
	for address, taken := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://[::1]:6443": true, "https://localhost:6443": true,
		"https://192.0.2.1:6443": false, "https://example.com": false,
	} {
		if _, err := newClient(&options{}, address); (err == nil) != taken {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAsManyObjectsAreMadeAsWereAskedFor(t *testing.T) {
	s := newServer(t, http.StatusCreated)
	got, err := rows(t, s, "bulk", "--count=7", "--only=bulk/pod/")
	if want := []string{"bulk/pod/7/c1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if s.askedFor("configmaps") {
		t.Error("a row that was not asked for was begun")
	}
}

// compactingServer forgets the first revision after some lists of it; a write then takes as long as it is told.
func compactingServer(t *testing.T, lists int64, pause time.Duration) *server {
	var asked atomic.Int64
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gone := asked.Load() > lists
		switch {
		case strings.Contains(r.URL.RawQuery, "Exact") && asked.Add(1) > lists:
			w.WriteHeader(http.StatusGone)
		case r.Method == "PUT" && gone:
			time.Sleep(pause)
		}
		w.Write([]byte(`{"metadata":{"resourceVersion":"1"}}`))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestWhatIsSlowWhileAServerCompactsIsToldApart(t *testing.T) {
	s := compactingServer(t, 2, 150*time.Millisecond)
	opt, err := parse("compaction", []string{"--url=" + s.URL, "--seconds=10", "--count=3", "--settle=0.3", "--rate=50"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBench(context.Background(), "compaction", opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := compaction(b); err != nil || len(b.results) != 3 {
		t.Fatalf("%v, %d rows", err, len(b.results))
	}
	steady, compacting := b.results[1], b.results[2]
	if steady.Extra["write_max_ms"] >= 150 || compacting.Extra["write_max_ms"] < 150 || compacting.Extra["writes_over_100ms"] < 1 {
		t.Errorf("steady %v, compacting %v", steady.Extra, compacting.Extra)
	}
	if compacting.Extra["read_ops"] < 1 || steady.Ops < 1 {
		t.Errorf("steady %v, compacting %v", steady.Extra, compacting.Extra)
	}
}

func TestAServerThatDoesNotCompactInTimeIsTold(t *testing.T) {
	_, err := rows(t, compactingServer(t, 1000, 0), "compaction", "--seconds=1", "--count=3")
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%v", err)
	}
	_, err = rows(t, compactingServer(t, 0, 0), "compaction", "--seconds=1", "--count=3")
	if err == nil || !strings.Contains(err.Error(), "too short") {
		t.Errorf("%v", err)
	}
}

func TestTheLongestOfEachSecondIsOfWhatWasDueInIt(t *testing.T) {
	began := time.Now()
	at := func(due, took time.Duration, write bool) moment { return moment{began.Add(due), write, took, nil} }
	moments := []moment{
		at(100*time.Millisecond, 5, true), at(900*time.Millisecond, 3*time.Second, true), at(2500*time.Millisecond, 7, true),
		at(300*time.Millisecond, 9, false),
	}
	if got, want := perSecond(moments, began, true), []time.Duration{3 * time.Second, 0, 7}; !slices.Equal(got, want) {
		t.Errorf("writes %v", got)
	}
	if got := perSecond(moments, began, false); !slices.Equal(got, []time.Duration{9}) {
		t.Errorf("reads %v", got)
	}
}

func TestDefinitionsAreOfThirtyKilobytesEachWithTextsOfItsOwn(t *testing.T) {
	texts := map[string]int{}
	for n := range 3 {
		definition := struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema struct {
							Properties map[string]struct {
								Properties map[string]struct{ Description string }
							}
						}
					}
				}
			}
		}{}
		raw := gadget(n).definition()
		if err := json.Unmarshal(raw, &definition); err != nil || len(raw) < 28_000 || len(raw) > 32_000 {
			t.Errorf("%d bytes, %v", len(raw), err)
		}
		for _, each := range definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
			texts[each.Description]++
		}
	}
	delete(texts, "")
	for text, times := range texts {
		if times > 1 {
			t.Errorf("%d times: %s", times, text)
		}
	}
	if len(texts) < 90 {
		t.Errorf("%d texts", len(texts))
	}
}
