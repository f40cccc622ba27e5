// Which tags are taken for signed ones, with a stand-in of GitHub's program gh.

//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gh answers for the tags of repository a/b as GitHub's program does.
const gh = `#!/bin/sh
[ "$1" = api ] && [ "$3" = --jq ] || exit 9
case $2 in
repos/a/b/git/ref/tags/light) echo "commit 11" ;;
repos/a/b/git/ref/tags/v*) echo "tag 2${2##*/}" ;;
repos/a/b/git/tags/2v1) echo "true valid" ;;
repos/a/b/git/tags/2v2) echo "false unsigned" ;;
repos/a/b/git/tags/2v3) echo "false unknown_key" ;;
*) echo "gh: Not Found (HTTP 404)" >&2; exit 1 ;;
esac
`

func TestSigned(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gh"), []byte(gh), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		right bool
		want  string
	}{
		{[]string{"v1"}, true, "v1 is signed"},
		{[]string{"v2"}, false, "the signature of v2 is not verified: unsigned"},
		{[]string{"v3"}, false, "not verified: unknown_key"},
		{[]string{"v4"}, false, "404"},
		{[]string{"light"}, false, "names a commit"},
		{[]string{"none"}, false, "404"},
		{nil, false, "tools/release/signed TAG"},
	} {
		cmd := exec.Command("./signed", c.args...)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "GITHUB_REPOSITORY=a/b")
		out, err := cmd.CombinedOutput()
		if (err == nil) != c.right || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: %v, %q, want %q", c.args, err, out, c.want)
		}
	}
}
