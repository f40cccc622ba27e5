// What there is to know of the terminal that the command writes to.

package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/spmmrun/spmm/internal/printable"
)

// terminal returns the terminal that w writes to, nil if it is none or one that cannot go back in a line.
func terminal(w io.Writer) *os.File {
	if p, ok := w.(*printable.Writer); ok {
		w = p.Unwrap()
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return f
}

// columns returns how many characters a line of the terminal has, 80 if it does not tell.
func columns(f *os.File) int {
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

// shorten cuts out of the middle of s what exceeds n characters: of a path, both ends tell most.
func shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	if n < 5 {
		return string(r[:max(0, n)])
	}
	left := (n - 1) / 3
	return string(r[:left]) + "…" + string(r[len(r)-(n-1-left):])
}
