// The record of what each blob of a kernel was made from, KERNEL.lock.

package shaderlock

import (
	"fmt"
	"io/fs"
	"strings"
)

// Lock is a kernel's record: its blobs by name. The file has a line for each, in the order of their names, with the
// name and the Entry's fields, separated by spaces.
type Lock map[string]Entry

// Entry says what a blob was made from.
type Entry struct {
	Source   string // Unit.Hash
	Code     string // SHA-256 of the blob, not compressed
	Compiler string
}

// NewEntry records what a unit is compiled from now.
func NewEntry(fsys fs.FS, u *Unit, compiler string) (Entry, error) {
	h, err := u.Hash(fsys)
	return Entry{Source: h, Compiler: compiler}, err
}

// For completes the entry with the blob that was made.
func (e Entry) For(blob []byte) Entry {
	e.Code = sum(blob)
	return e
}

func parseLock(text string) (Lock, error) {
	l := Lock{}
	for line := range strings.Lines(text) {
		words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(words) != 4 {
			return nil, fmt.Errorf("%q is not a blob's name, two hashes and a compiler", line)
		}
		l[words[0]] = Entry{Source: words[1], Code: words[2], Compiler: words[3]}
	}
	return l, nil
}

func (l Lock) format() string {
	var b strings.Builder
	for _, blob := range sortedKeys(l) {
		fmt.Fprintf(&b, "%s %s %s %s\n", blob, l[blob].Source, l[blob].Code, l[blob].Compiler)
	}
	return b.String()
}
