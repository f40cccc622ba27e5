// The environment that backend/cuda/env.sh sets builds and links without CUDA's toolkit.

package driver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// env.sh names the folders of the header and of the stub, keeps the user's own flags, and says the
// same again when its own output is set already: other flags would build everything anew.
func TestEnvScript(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	run := func(which, variable, value string) string {
		t.Helper()
		cmd := exec.Command("sh", "../../env.sh", which)
		cmd.Env = append(os.Environ(), variable+"="+value)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for which, c := range map[string]struct{ variable, flag string }{
		"cflags":  {"CGO_CFLAGS", `"-I` + here + `"`},
		"ldflags": {"CGO_LDFLAGS", `"-L` + filepath.Join(here, "stub") + `"`},
	} {
		plain := run(which, c.variable, "")
		if !strings.HasPrefix(plain, c.flag+" ") || !strings.HasSuffix(plain, " -O2 -g") {
			t.Errorf("%s: %s", which, plain)
		}
		if own := run(which, c.variable, "-O3"); !strings.HasPrefix(own, c.flag+" ") || !strings.HasSuffix(own, " -O3") {
			t.Errorf("%s with flags of the user's: %s", which, own)
		}
		if again := run(which, c.variable, plain); again != plain {
			t.Errorf("%s a second time: %s", which, again)
		}
	}
}
