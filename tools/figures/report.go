// Reports of bench/results, and where the figures of one come from, in words.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spmmrun/spmm/internal/benchmark"
)

// reports reads those of a folder by their names without .json.
type reports struct{ folder string }

func (rs reports) read(name string) (*benchmark.Report, error) {
	f, err := os.Open(filepath.Join(rs.folder, name+".json"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return benchmark.ReadReport(f, name+".json")
}

// merged returns several as one.
func (rs reports) merged(names []string) (*benchmark.Report, error) {
	var all []*benchmark.Report
	for _, name := range names {
		r, err := rs.read(name)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it names no reports")
	}
	return benchmark.Merge(all...)
}

// origin says on what, when and by which command a report was measured.
func origin(name string, e *benchmark.Environment) string {
	var on []string
	for _, d := range e.Devices {
		if text := fmt.Sprintf("%s (%s)", d.Name, d.Driver); !slices.Contains(on, text) {
			on = append(on, text)
		}
	}
	text := fmt.Sprintf("*%s, %s: [%s](../bench/results/%s.json), `%s`",
		strings.Join(on, ", "), e.Start.Format("2006-01-02"), name, name, command(e.Command))
	if e.Note != "" {
		text += "; " + e.Note
	}
	return wrapped(text+".*", 120) + "\n"
}

// wrapped breaks a text between words into lines of at most this many characters.
func wrapped(text string, most int) string {
	var b strings.Builder
	at := 0
	for i, w := range strings.Fields(text) {
		n := utf8.RuneCountInString(w)
		switch {
		case i == 0:
		case at+1+n > most:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at += n
	}
	return b.String()
}

// command is a command without folders, as it was typed.
func command(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if strings.HasPrefix(w, "./") {
			w = filepath.Base(w)
		}
		out[i] = strings.ReplaceAll(w, "`", "'")
	}
	return strings.Join(out, " ")
}
