// Package text reads numbers from text files: lines and tokens from a large buffer, with the file's
// name and line number in every error.
package text

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spmmrun/spmm/internal/inflate"
)

// bufSize bounds the length of a line.
const bufSize = 256 << 10

// Scanner reads lines or tokens.
type Scanner struct {
	r        io.Reader
	name     string
	buf      []byte
	pos, end int
	line     int64
	read     int64 // bytes
	err      error // why no more can be read; io.EOF at the end
}

// NewScanner returns a scanner of r. Errors start with name.
func NewScanner(r io.Reader, name string) *Scanner {
	return &Scanner{r: r, name: name, buf: make([]byte, bufSize)}
}

// Errorf returns an error at the line read last: NAME:LINE: message.
func (s *Scanner) Errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", s.name, max(1, s.line), fmt.Errorf(format, args...))
}

// LineNumber returns the number of the line read last, from 1.
func (s *Scanner) LineNumber() int64 { return s.line }

// Offset returns how many bytes lie before what is read next.
func (s *Scanner) Offset() int64 { return s.read - int64(s.end-s.pos) }

// SetLineNumber says how many lines there are before the input.
func (s *Scanner) SetLineNumber(n int64) { s.line = n }

// Err returns why Line or Int returned false: nil at the end of the input.
func (s *Scanner) Err() error {
	switch {
	case s.err == io.EOF:
		return nil
	case errors.Is(s.err, io.ErrUnexpectedEOF):
		return s.Errorf("compressed data is cut off")
	}
	return s.Errorf("%w", s.err)
}

// Line returns the next line without its end, valid until the next call, or false.
func (s *Scanner) Line() ([]byte, bool) {
	for {
		if n := bytes.IndexByte(s.buf[s.pos:s.end], '\n'); n >= 0 {
			line := s.buf[s.pos : s.pos+n]
			s.pos += n + 1
			s.line++
			return bytes.TrimSuffix(line, []byte{'\r'}), true
		}
		if s.err == nil {
			s.fill()
			continue
		}
		if s.err != io.EOF || s.pos == s.end {
			return nil, false
		}
		line := s.buf[s.pos:s.end]
		s.pos = s.end
		s.line++
		return line, true
	}
}

// fill reads more input behind what is left of the buffer, or sets err.
func (s *Scanner) fill() {
	if s.pos == 0 && s.end == len(s.buf) {
		s.line++
		s.err = fmt.Errorf("line longer than %d bytes", len(s.buf))
		return
	}
	copy(s.buf, s.buf[s.pos:s.end])
	s.pos, s.end = 0, s.end-s.pos
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		s.read += int64(n)
		s.err = err
		if n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}

// maxToken is the longest integer token in bytes.
const maxToken = 32

// Int returns the next integer of a stream in which spaces, commas and line ends separate integers,
// or false at the end of the input. An error is one at its line.
func (s *Scanner) Int() (v int64, ok bool, err error) {
	if s.line == 0 {
		s.line = 1
	}
	for {
		for s.pos < s.end && isSeparator(s.buf[s.pos]) {
			if s.buf[s.pos] == '\n' {
				s.line++
			}
			s.pos++
		}
		if s.err != nil || s.end-s.pos > maxToken {
			break
		}
		s.fill()
	}
	if s.pos == s.end {
		return 0, false, s.Err()
	}
	tok := s.buf[s.pos:min(s.end, s.pos+maxToken)]
	v, n := Int(tok)
	if n == 0 || n < len(tok) && !isSeparator(tok[n]) {
		return 0, false, s.Errorf("%s is not an integer", Quote(tok))
	}
	s.pos += n
	return v, true, nil
}

func isSeparator(c byte) bool { return c == ' ' || c == ',' || c == '\n' || c == '\r' || c == '\t' }

// Quote returns the first token of b in quotes, cut if it is long.
func Quote(b []byte) string {
	if i := bytes.IndexFunc(b, func(r rune) bool { return r < 0x80 && isSeparator(byte(r)) }); i >= 0 {
		b = b[:i]
	}
	if len(b) > 24 {
		return fmt.Sprintf("%q…", b[:24])
	}
	return fmt.Sprintf("%q", b)
}

// Gunzip returns what r holds, decompressed if it is gzip data.
func Gunzip(r io.Reader) (*bufio.Reader, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	if magic, _ := br.Peek(2); string(magic) != "\x1f\x8b" {
		return br, nil
	}
	z, err := inflate.Gzip(br)
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return nil, errors.New("compressed data is cut off")
	}
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(z, 64<<10), nil
}
