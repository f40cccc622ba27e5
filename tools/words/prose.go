package main // prose.go: what of a file is prose.

import (
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// prose returns the prose of a file as texts that each have the file's lines, empty where a line has none. It is nil
// for a file of no known kind.
func prose(file, src string) []string {
	switch path.Ext(file) {
	case ".md":
		return []string{markdown(src)}
	case ".go":
		comments, literals := goProse(src)
		if strings.HasSuffix(file, "_test.go") {
			return []string{comments}
		}
		return []string{comments, literals}
	case ".c", ".h", ".cpp", ".cu", ".cuh", ".comp", ".glsl", ".wgsl", ".js", ".s":
		return []string{cComments(src)}
	case ".yml", ".yaml":
		return []string{hashComments(src)}
	}
	if path.Base(file) == "Makefile" || strings.HasPrefix(src, "#!") {
		return []string{hashComments(src)}
	}
	return nil
}

var (
	codeSpan   = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
)

// markdown leaves out blocks of code, code within lines, and where links lead.
func markdown(src string) string {
	lines := strings.Split(src, "\n")
	fenced := false
	for i, line := range lines {
		fence := strings.HasPrefix(line, "```")
		if fence || fenced || strings.HasPrefix(line, "    ") {
			line = ""
		}
		if fence {
			fenced = !fenced
		}
		lines[i] = strings.TrimSpace(line)
	}
	text := linkTarget.ReplaceAllStringFunc(strings.Join(lines, "\n"), func(s string) string { return "] " })
	return codeSpan.ReplaceAllStringFunc(text,
		func(s string) string { return "`" + strings.Repeat("\n", strings.Count(s, "\n")) })
}

var sentence = regexp.MustCompile(`(?i)\b[a-z]+\s[a-z]+\s[a-z]+\b`)

// goProse returns a Go file's comments, and those of its string literals that have three words in a row.
func goProse(src string) (comments, literals string) {
	lines := strings.Count(src, "\n") + 1
	c, l := make([]string, lines), make([]string, lines)
	files := token.NewFileSet()
	f := files.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(f, []byte(src), func(token.Position, string) {}, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return strings.Join(c, "\n"), strings.Join(l, "\n")
		}
		to := c
		if tok == token.STRING && sentence.MatchString(text) {
			to = l
		} else if tok != token.COMMENT {
			continue
		}
		first := f.Line(pos) - 1
		for i, line := range strings.Split(text, "\n") {
			to[first+i] = strings.TrimSpace(to[first+i] + " " + trimComment(line))
		}
	}
}

// trimComment takes a comment's marks away.
func trimComment(line string) string {
	line = strings.TrimSpace(line)
	for _, mark := range []string{"//", "/*", "*/"} {
		line = strings.TrimPrefix(line, mark)
	}
	return strings.TrimSpace(strings.TrimSuffix(line, "*/"))
}

var cComment = regexp.MustCompile(`(?s)"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/`)

// cComments returns the comments of languages that have C's.
func cComments(src string) string {
	lines := make([]string, strings.Count(src, "\n")+1)
	for _, at := range cComment.FindAllStringIndex(src, -1) {
		if src[at[0]] == '"' {
			continue
		}
		first := strings.Count(src[:at[0]], "\n")
		for i, line := range strings.Split(src[at[0]:at[1]], "\n") {
			lines[first+i] = strings.TrimSpace(lines[first+i] + " " + trimComment(line))
		}
	}
	return strings.Join(lines, "\n")
}

var hashComment = regexp.MustCompile(`(?:^|\s)#+ (.*)`)

// hashComments returns the comments of scripts and Makefiles.
func hashComments(src string) string {
	lines := strings.Split(src, "\n")
	for i, line := range lines {
		if m := hashComment.FindStringSubmatch(line); m != nil {
			lines[i] = strings.TrimSpace(m[1])
		} else {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}
