// Judges whether a history of requests to objects is linearizable, object by object.
//
//	judge [-seconds 60] [-pictures FOLDER] HISTORY
//
// HISTORY has one operation a line, as JSON (see operation). What is judged is one register for each key with create,
// compare-and-swap update and delete by resourceVersion; where the outcome of a write is not known, both are possible,
// at any time after it was sent. The verdict is printed as JSON.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// operation is a request and what came of it.
type operation struct {
	Key    string `json:"key"`
	Client int    `json:"client"`
	// Verb is create, update, delete or read.
	Verb string `json:"verb"`
	// Value is what is written, or what was read.
	Value string `json:"value"`
	// Expected is the version that an update or a delete names.
	Expected int64 `json:"expected"`
	// Outcome is ok, exists, conflict, missing or unknown.
	Outcome string `json:"outcome"`
	// Version is that of what was written or read; 0 if it is not known.
	Version int64 `json:"version"`
	Began   int64 `json:"began"`
	// Ended is 0 where the outcome is unknown.
	Ended int64 `json:"ended"`
}

// object is what a key holds. A version of 0 is one that nobody has been told; it is later than Floor.
type object struct {
	There   bool
	Value   string
	Version int64
	// Floor is the last version that is known: later ones are greater.
	Floor int64
}

func (o object) mayBe(version int64) bool {
	return o.There && (o.Version == version || (o.Version == 0 && version > o.Floor))
}

func written(value string, version, floor int64) object {
	if version > floor {
		floor = version
	}
	return object{There: true, Value: value, Version: version, Floor: floor}
}

// step gives what may be there after an operation, nothing if it cannot have been answered so.
func step(before object, op operation) []object {
	floor := before.Floor
	if before.Version > floor {
		floor = before.Version
	}
	switch op.Outcome {
	case "exists":
		return when(before.There, before)
	case "missing":
		return when(!before.There, before)
	case "conflict":
		return when(before.There && before.Version != op.Expected, before)
	}
	if op.Verb == "read" {
		if before.There && before.Value == op.Value && before.mayBe(op.Version) {
			return []object{written(op.Value, op.Version, floor)}
		}
		return nil
	}
	possible := op.Verb == "create" && !before.There || op.Verb != "create" && before.mayBe(op.Expected)
	if op.Expected > floor {
		floor = op.Expected
	}
	var after []object
	if possible && (op.Version == 0 || op.Version > floor) {
		if op.Verb == "delete" {
			after = append(after, object{Floor: floor})
		} else {
			after = append(after, written(op.Value, op.Version, floor))
		}
	}
	if op.Outcome == "unknown" {
		after = append(after, before)
	}
	return after
}

func when(is bool, state object) []object {
	if is {
		return []object{state}
	}
	return nil
}

func described(op operation) string {
	switch op.Verb {
	case "create":
		return fmt.Sprintf("create(%s) -> %s %d", op.Value, op.Outcome, op.Version)
	case "update":
		return fmt.Sprintf("update(%s at %d) -> %s %d", op.Value, op.Expected, op.Outcome, op.Version)
	case "delete":
		return fmt.Sprintf("delete(at %d) -> %s", op.Expected, op.Outcome)
	}
	if op.Outcome == "missing" {
		return "read -> missing"
	}
	return fmt.Sprintf("read -> %s %d", op.Value, op.Version)
}

var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{object{}} },
	Step: func(state, input, _ any) []any {
		after := []any{}
		for _, each := range step(state.(object), input.(operation)) {
			after = append(after, each)
		}
		return after
	},
	DescribeOperation: func(input, _ any) string { return described(input.(operation)) },
	DescribeState: func(state any) string {
		if !state.(object).There {
			return "nothing"
		}
		return fmt.Sprintf("%s %d", state.(object).Value, state.(object).Version)
	},
}).ToModel()

type verdict struct {
	Keys       int      `json:"keys"`
	Operations int      `json:"operations"`
	Unknown    int      `json:"unknown"`
	Wrong      []string `json:"wrong"`
	Undecided  []string `json:"undecided"`
	Pictures   []string `json:"pictures"`
}

func read(path string) (map[string][]porcupine.Operation, verdict, error) {
	found := verdict{Wrong: []string{}, Undecided: []string{}, Pictures: []string{}}
	file, err := os.Open(path)
	if err != nil {
		return nil, found, err
	}
	defer file.Close()
	histories := map[string][]porcupine.Operation{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var op operation
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			return nil, found, err
		}
		if op.Outcome == "unknown" {
			found.Unknown++
			op.Ended = math.MaxInt64
		}
		found.Operations++
		histories[op.Key] = append(histories[op.Key], porcupine.Operation{
			ClientId: op.Client, Input: op, Call: op.Began, Return: op.Ended,
		})
	}
	found.Keys = len(histories)
	return histories, found, lines.Err()
}

func main() {
	seconds := flag.Float64("seconds", 60, "for one object")
	pictures := flag.String("pictures", "", "where what is wrong is drawn")
	flag.Parse()
	histories, found, err := read(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	limit := time.Duration(*seconds * float64(time.Second))
	for key, history := range histories {
		result, info := porcupine.CheckOperationsVerbose(model, history, limit)
		switch result {
		case porcupine.Unknown:
			found.Undecided = append(found.Undecided, key)
		case porcupine.Illegal:
			found.Wrong = append(found.Wrong, key)
			if *pictures != "" {
				path := filepath.Join(*pictures, strings.ReplaceAll(key, "/", "_")+".html")
				if err := porcupine.VisualizePath(model, info, path); err == nil {
					found.Pictures = append(found.Pictures, path)
				}
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		os.Exit(2)
	}
}
