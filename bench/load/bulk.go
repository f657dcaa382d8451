package main

import (
	"fmt"
	"time"
)

// bulk makes exactly --count objects of a kind, from many requests at a time; the figure of the row is how long all took.
func bulk(b *bench) error {
	for _, k := range []*kind{configMaps, pods} {
		for _, workers := range b.opt.concurrency {
			name := fmt.Sprintf("bulk/%s/%d/c%d", k.name, b.opt.count, workers)
			if !b.wanted(name) {
				continue
			}
			b.warm(workers, b.creates(k, fmt.Sprintf("warm%d", workers)))
			r := b.measure(name, workers, 10*time.Minute, b.opt.count, b.creates(k, fmt.Sprintf("b%d", workers)))
			r.Extra["wall_seconds"] = r.Seconds
			b.emit(r)
			if r.Ops != b.opt.count {
				return fmt.Errorf("created %d of %d %s: %v", r.Ops, b.opt.count, k.many, r.Errors)
			}
		}
	}
	return nil
}
