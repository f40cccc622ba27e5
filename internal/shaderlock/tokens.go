// Sources as a compiler sees them: without comments, and without the spaces and line breaks between tokens.

package shaderlock

import "strings"

// tokens returns a source in C++ or GLSL without its comments, with one space where two tokens need it, and a line for each
// preprocessor directive. Sources that differ in comments and layout alone give the same text.
func tokens(text string) string {
	s := scanner{text: strings.ReplaceAll(text, "\\\n", " "), fresh: true}
	for s.at < len(s.text) {
		s.step()
	}
	return s.out.String()
}

type scanner struct {
	text      string
	at        int
	out       strings.Builder
	last      byte // what was written last
	space     bool // blanks were skipped since
	fresh     bool // nothing of this line was written
	directive bool // this line begins with #
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
		s.write(rest[:n])
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
		s.out.WriteByte('\n')
		s.last, s.space, s.directive = '\n', false, false
	} else {
		s.space = true
	}
	s.fresh = true
}

// startDirective puts a directive on a line of its own.
func (s *scanner) startDirective() {
	if s.last != 0 && s.last != '\n' {
		s.out.WriteByte('\n')
	}
	s.last, s.space, s.directive = '\n', false, true
}

// write writes part of a token, after a space where there was one and the tokens would otherwise join. In a directive every
// space counts: it tells a macro's parameters from its text.
func (s *scanner) write(t string) {
	if s.space && s.last != 0 && s.last != '\n' && (s.directive || word(s.last) == word(t[0])) {
		s.out.WriteByte(' ')
	}
	s.out.WriteString(t)
	s.last, s.space, s.fresh = t[len(t)-1], false, false
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
