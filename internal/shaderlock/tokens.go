// Sources as a compiler sees them: without comments, and without the spaces and line breaks between tokens.

package shaderlock

import (
	"bytes"
	"strings"
)

// tokens returns a source in C++ or GLSL without its comments, with one space where two tokens would join, and a line
// for each preprocessor directive. String literals that follow each other are one. Sources that differ in comments and
// layout alone give the same text.
func tokens(text string) string {
	s := scanner{text: strings.ReplaceAll(text, "\\\n", " "), fresh: true}
	for s.at < len(s.text) {
		s.step()
	}
	return string(s.out)
}

type scanner struct {
	text      string
	at        int
	out       []byte
	end       int  // where the string that was written last has its end quote; 0: something else was written last
	last      byte // what was written last
	space     bool // blanks were skipped since
	fresh     bool // nothing of this line was written
	directive bool // this line begins with #
	begin     int  // where that was written
}

func (s *scanner) step() {
	c, rest := s.text[s.at], s.text[s.at:]
	switch {
	case strings.HasPrefix(rest, "//"):
		s.at += until(rest, "\n")
		s.space = true
	case strings.HasPrefix(rest, "/*"):
		s.at = min(len(s.text), s.at+until(rest, "*/")+len("*/"))
		s.space = true
	case c == '\n':
		s.at++
		s.newline()
	case c == ' ' || c == '\t' || c == '\r':
		s.at++
		s.space = true
	case c == '"' || c == '\'':
		n := quoted(rest)
		s.writeQuoted(rest[:n])
		s.at += n
	default:
		if c == '#' && s.fresh {
			s.startDirective()
		}
		s.write(rest[:1])
		s.at++
	}
}

// newline ends a directive; elsewhere it is a space.
func (s *scanner) newline() {
	if s.directive {
		s.out = append(s.out, '\n')
		s.last, s.space, s.directive = '\n', false, false
	} else {
		s.space = true
	}
	s.fresh = true
}

// startDirective puts a directive on a line of its own.
func (s *scanner) startDirective() {
	if s.last != 0 && s.last != '\n' {
		s.out = append(s.out, '\n')
	}
	s.last, s.space, s.directive, s.begin = '\n', false, true, len(s.out)
}

// write writes part of a token, after a space where there was one and the tokens would otherwise join. A space behind a
// macro's name counts too: it tells that a parenthesis begins the macro's text.
func (s *scanner) write(t string) {
	if s.space && s.last != 0 && s.last != '\n' && (joins(s.last, t[0]) || s.names() && t[0] == '(') {
		s.out = append(s.out, ' ')
	}
	s.out = append(s.out, t...)
	s.last, s.space, s.fresh, s.end = t[len(t)-1], false, false, 0
}

// writeQuoted writes a string or a character, as part of the string before it if that is all there is between.
func (s *scanner) writeQuoted(t string) {
	if t[0] == '"' && s.end > 0 {
		s.out, s.space, t = s.out[:s.end], false, t[1:]
	}
	s.write(t)
	if t[len(t)-1] == '"' {
		s.end = len(s.out) - 1
	}
}

// joins tells whether two tokens that end and begin so need a space between them.
func joins(a, b byte) bool {
	const operators = "+-*/%&|^<>=!:.#"
	operator := func(c byte) bool { return strings.IndexByte(operators, c) >= 0 }
	return operator(a) && operator(b) || word(a) && (word(b) || quote(b)) || quote(a) && word(b)
}

func quote(c byte) bool { return c == '"' || c == '\'' }

// names tells that a macro's name was written last.
func (s *scanner) names() bool {
	name, found := bytes.CutPrefix(s.out[s.begin:], []byte("#define "))
	return s.directive && found && bytes.IndexByte(name, ' ') < 0
}

func word(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// until returns how many bytes come before end, or all if it does not come.
func until(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i
	}
	return len(text)
}

// quoted returns the length of the string or character that the text begins with; at most a line.
func quoted(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\n':
			return i
		case text[0]:
			return i + 1
		}
	}
	return len(text)
}
