// Package printable makes text that others wrote, such as file names and the contents of manifests, safe to print:
// a terminal obeys escape sequences, and a line break inside a name can pass for a line of the program's own.
package printable

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// String returns s in one line: each rune that is not printable is written as JSON and Go do, \u001b, and each byte
// that is no UTF-8 as \x9b. Control, format and bidirectional characters are among them, and line breaks and tabs.
func String(s string) string { return string(escape(nil, []byte(s), "")) }

// escape appends b to out with what is not printable escaped, but for the characters in keep.
func escape(out, b []byte, keep string) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, `\x%02x`, b[0])
		case unicode.IsPrint(r) || strings.ContainsRune(keep, r):
			out = append(out, b[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		b = b[n:]
	}
	return out
}

// Writer passes on text as String does, but keeps line breaks and tabs. What is escaped inside a JSON string stays the
// same string. It remembers the first error, so that who prints need not look after each line.
type Writer struct {
	w    io.Writer
	rest []byte // the start of a rune whose other bytes are to come
	err  error
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Unwrap returns what the Writer writes to.
func (w *Writer) Unwrap() io.Writer { return w.w }

func (w *Writer) Write(p []byte) (int, error) {
	b := append(w.rest, p...)
	whole := len(b)
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				whole -= n
			}
			break
		}
	}
	w.rest = append([]byte(nil), b[whole:]...)
	if w.write(b[:whole]); w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func (w *Writer) write(b []byte) {
	if w.err == nil && len(b) > 0 {
		_, w.err = w.w.Write(escape(nil, b, "\n\t"))
	}
}

// Close writes what is left of a rune that never ended, and returns the first error there was. It does not close what
// it writes to.
func (w *Writer) Close() error {
	w.write(w.rest)
	w.rest = nil
	return w.err
}
