package main

import (
	"context"
	"os"
	"strings"
	"testing"
)

// The documentation has the table that the command prints.
func TestTableIsCurrent(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reproducible.md")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(context.Background(), &out, ""); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), out.String()) {
		t.Errorf("docs/reproducible.md has another table than this:\n%s", out.String())
	}
}

func TestDeviceColumn(t *testing.T) {
	var out strings.Builder
	if err := run(context.Background(), &out, "cpu"); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := strings.Count(line, "|"); n != len(methods)+3 {
			t.Errorf("%d bars in %s", n, line)
		}
	}
	if err := run(context.Background(), &out, "nothing"); err == nil {
		t.Error("no error for a device that is not there")
	}
}
