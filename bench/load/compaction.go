package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// compactionObjects are the ConfigMaps whose history is compacted.
const compactionObjects = 1000

// moment is a request of the even load: when it was due, what it was, how long after that it was answered, and how.
type moment struct {
	due   time.Time
	write bool
	took  time.Duration
	err   error
}

// compaction overwrites --count revisions as fast as it can, then sends writes and reads at an even rate until the
// server has compacted that history, and for --settle seconds more. Its interval is the server's own: it has to be
// longer than the overwriting takes, and shorter than --seconds.
//
// A history is compacted once a list at its first revision, which is asked for every second, is answered with 410. What
// was due since the last list that had another answer is the row "compacting", what was due before the row "steady".
func compaction(b *bench) error {
	name := fmt.Sprintf("compaction/%d", b.opt.count)
	if !b.wanted(name) {
		return nil
	}
	if _, err := b.populate("", configMaps, "old", 0, compactionObjects); err != nil {
		return err
	}
	first, err := b.revision()
	if err != nil {
		return err
	}
	put := func(connection, n int) error {
		body := fill(configMaps.body, fmt.Sprintf("old-%d", n%compactionObjects), int64(n), "")
		_, err := b.client.do(b.ctx, connection, request{
			method: "PUT", path: configMaps.path(b.namespace, fmt.Sprintf("old-%d", n%compactionObjects)), body: body,
		}, nil)
		return err
	}
	history := b.measure(name+"/history", 64, 10*time.Minute, b.opt.count, func(w *worker, n int) error { return put(w.id, n) })
	b.emit(history)
	if history.Ops != b.opt.count {
		return fmt.Errorf("overwrote %d of %d: %v", history.Ops, b.opt.count, history.Errors)
	}
	if gone, err := b.isCompacted(first); gone || err != nil {
		return fmt.Errorf("compacted before the load began: the server's interval is too short (%v)", err)
	}
	even := &evenLoad{bench: b, act: func(write bool, n int) error {
		if write {
			return put(n, n)
		}
		path := configMaps.path(b.namespace, fmt.Sprintf("old-%d", n*7%compactionObjects))
		_, err := b.client.do(b.ctx, n, request{path: path}, nil)
		return err
	}}
	before, began := b.meter.read(), time.Now()
	stop := make(chan struct{})
	running := sync.WaitGroup{}
	running.Go(func() { even.run(began, stop) })
	split, gone := began, began
	var between usage
	for gone == began && time.Since(began) < b.span() && b.ctx.Err() == nil {
		between, split = b.meter.read(), time.Now()
		time.Sleep(time.Second)
		if compacted, err := b.isCompacted(first); err != nil {
			close(stop)
			running.Wait()
			return err
		} else if compacted {
			gone = time.Now()
		}
	}
	if gone != began {
		time.Sleep(time.Duration(b.opt.settle * float64(time.Second)))
	}
	close(stop)
	running.Wait()
	after, end := b.meter.read(), time.Now()
	if gone == began {
		split, between = end, after
	}
	even.tell(began)
	steady := even.row(b, name+"/steady", began, split, before, between)
	b.emit(steady)
	if gone == began {
		return fmt.Errorf("nothing was compacted in %v: the server's interval is too long", b.span())
	}
	b.emit(even.row(b, name+"/compacting", split, end, between, after))
	return nil
}

// revision is the newest resourceVersion of the namespace's ConfigMaps.
func (b *bench) revision() (string, error) {
	got, err := b.client.do(b.ctx, 0, request{path: configMaps.path(b.namespace, ""), query: "limit=1"}, new(bytes.Buffer))
	return resourceVersion(got.body), err
}

// isCompacted says whether a revision cannot be listed any more.
func (b *bench) isCompacted(revision string) (bool, error) {
	query := "limit=1&resourceVersionMatch=Exact&resourceVersion=" + revision
	_, err := b.client.do(b.ctx, 0, request{path: configMaps.path(b.namespace, ""), query: query}, nil)
	var status *statusError
	if errors.As(err, &status) && status.code == http.StatusGone {
		return true, nil
	}
	return false, err
}

// evenLoad sends --rate writes and as many reads a second, each when it is due, whether or not those before it were
// answered: a server that stops for a while is late with all of them.
type evenLoad struct {
	bench   *bench
	act     func(write bool, n int) error
	mutex   sync.Mutex
	moments []moment
	waiting atomic.Int64
}

// mostWaiting bounds the requests that wait for an answer; what is due beyond is sent later, and its wait counted.
const mostWaiting = 1000

func (e *evenLoad) run(began time.Time, stop <-chan struct{}) {
	interval := time.Second / time.Duration(e.bench.opt.rate)
	group := sync.WaitGroup{}
	defer group.Wait()
	for n := 0; ; n++ {
		due := began.Add(time.Duration(n) * interval)
		select {
		case <-stop:
			return
		case <-e.bench.ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		for e.waiting.Load() > mostWaiting {
			time.Sleep(time.Millisecond)
		}
		for _, write := range []bool{true, false} {
			e.waiting.Add(1)
			group.Go(func() {
				defer e.waiting.Add(-1)
				err := e.act(write, n)
				took := time.Since(due)
				e.mutex.Lock()
				defer e.mutex.Unlock()
				e.moments = append(e.moments, moment{due, write, took, err})
			})
		}
	}
}

// row accounts what was due from one moment to another.
func (e *evenLoad) row(b *bench, name string, from, to time.Time, before, after usage) *Result {
	w := &worker{errors: map[string]int{}, samples: map[string][]time.Duration{}}
	longest := map[bool]time.Duration{}
	late := map[bool]float64{}
	for _, each := range e.moments {
		if each.due.Before(from) || !each.due.Before(to) {
			continue
		}
		if each.err != nil {
			w.fail(each.err)
			continue
		}
		w.observe("", each.took)
		w.observe(map[bool]string{true: "write", false: "read"}[each.write], each.took)
		longest[each.write] = max(longest[each.write], each.took)
		if each.took > 100*time.Millisecond {
			late[each.write]++
		}
	}
	r := b.summarize(name, before, to.Sub(from), []*worker{w})
	r.account(before, after)
	r.Extra["write_max_ms"], r.Extra["read_max_ms"] = float64(longest[true])/1e6, float64(longest[false])/1e6
	r.Extra["writes_over_100ms"], r.Extra["reads_over_100ms"] = late[true], late[false]
	return r
}

// tell prints the longest write and read, in milliseconds, of what was due in each second.
func (e *evenLoad) tell(began time.Time) {
	for _, write := range []bool{true, false} {
		seconds := perSecond(e.moments, began, write)
		texts := make([]string, len(seconds))
		for n, each := range seconds {
			texts[n] = fmt.Sprintf("%.0f", float64(each)/1e6)
		}
		fmt.Printf("longest %s of each second, ms: %s\n", map[bool]string{true: "write", false: "read"}[write], strings.Join(texts, " "))
	}
}

// perSecond is the longest of the writes, or reads, that were due in each second.
func perSecond(moments []moment, began time.Time, write bool) []time.Duration {
	longest := []time.Duration{}
	for _, each := range moments {
		if each.write != write {
			continue
		}
		at := int(each.due.Sub(began) / time.Second)
		for len(longest) <= at {
			longest = append(longest, 0)
		}
		longest[at] = max(longest[at], each.took)
	}
	return longest
}
