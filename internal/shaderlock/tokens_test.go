// Which texts are the same to a compiler, and which are not.

package shaderlock

import "testing"

func TestTokens(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"comments", "int a; // one\n/* two\n three */ int b;", "int a;int b;"},
		{"a comment between words", "int/**/a;", "int a;"},
		{"line breaks", "f(a,\n  b +\n\tc);\n", "f(a,b+c);"},
		{"brackets", "f (a) (b [c]) {\n}", "f(a)(b[c]){}"},
		{"strings on several lines", "f(\"a\"\n  \"b\" // c\n \"c\" d \"e\")", `f("abc" d "e")`},
		{"operators", "a + +b; a++ + b;", "a+ +b;a++ +b;"},
		{"comments in strings", `asm("// {\n" "/* \" */");`, `asm("// {\n/* \" */");`},
		{"a slash", "a / b", "a/b"},
		{"a character", `c = '"'; // "`, `c='"';`},
		{"directives", "int a;\n  #define  F(x)  (x)  // one\n\n#if 1\nint b;", "int a;\n#define F(x) (x)\n#if 1\nint b;"},
		{"an object that begins with a parenthesis", "#define F (x)", "#define F (x)"},
		{"a directive of several lines", "#define F(x) \\\n    g(x)\nh", "#define F(x)g(x)\nh"},
		{"a hash within a line", "a # b", "a#b"},
		{"a quote in a directive", "#error don't\nint a;", "#error don't\nint a;"},
		{"an open comment", "a /* b", "a"},
		{"an open string", "a \"b", "a \"b"},
	} {
		if got := tokens(c.text); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", c.name, c.text, got, c.want)
		}
	}
}
