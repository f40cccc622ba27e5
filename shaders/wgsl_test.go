// WGSL must suit browsers, not only wgpu-native's compiler of 2023.

package shaders_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders"
)

// Every WGSL source is compiled by Chromium's compiler, Tint, without an error or a warning. The browser is set up by
// tools/browser/chromium --setup, and must be there if SPMM_REQUIRE_BROWSER is set.
func TestWGSLInBrowser(t *testing.T) {
	type shader struct {
		Name string `json:"name"`
		Code string `json:"code"`
	}
	// The last one is wrong: a browser that does not object has checked nothing.
	const wrong = "a shader that only old compilers take"
	var sources []shader
	for _, k := range shaders.All() {
		for _, v := range k.Forms() {
			if v.Code != backend.CodeWGSL {
				continue
			}
			b, err := k.Binary(v)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, shader{k.Name + "/" + v.Name, string(b.Code)})
		}
	}
	if len(sources) < 30 {
		t.Fatalf("only %d variants in WGSL", len(sources))
	}
	sources = append(sources, shader{wrong, "@compute @workgroup_size(1) fn main() { let x = 5u; _ = x >> 1u & 1u; }"})

	page, err := os.ReadFile("testdata/wgsl.html")
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(sources) // which escapes < and >, so that no source ends the script
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		Name     string   `json:"name"`
		Messages []string `json:"messages"`
	}
	var answers []answer
	text, ok := browse(t, strings.Replace(string(page), "[]</script>", string(list)+"</script>", 1))
	if !ok {
		return
	}
	if err := json.Unmarshal([]byte(text), &answers); err != nil {
		t.Fatalf("the browser's answer %.200q: %v", text, err)
	}
	if len(answers) != len(sources) {
		t.Errorf("%d answers to %d shaders", len(answers), len(sources))
	}
	for _, a := range answers {
		if a.Name == wrong {
			if len(a.Messages) == 0 {
				t.Error("the browser has nothing against mixing >> and &")
			}
			continue
		}
		for _, m := range a.Messages {
			t.Errorf("%s: %s", a.Name, m)
		}
	}
}

// browse opens a page whose scripts post their result to /result and returns that; false where there is no browser and
// none is required.
func browse(t *testing.T, page string) (string, bool) {
	result := make(chan string, 1)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/result" {
			io.WriteString(w, page)
			return
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		select {
		case result <- string(text):
		default:
		}
	}))
	defer site.Close()
	args := []string{"--cached", site.URL}
	if os.Getenv("SPMM_REQUIRE_BROWSER") != "" {
		args = args[1:]
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := exec.CommandContext(ctx, "../tools/browser/chromium", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // Chromium's profile
	cmd.WaitDelay = time.Second
	ended := make(chan error, 1)
	var out []byte
	go func() {
		var err error
		out, err = cmd.CombinedOutput()
		ended <- err
	}()
	select {
	case text := <-result:
		stop()
		<-ended
		return text, true
	case err := <-ended:
		if cmd.ProcessState.ExitCode() == 3 && len(args) == 2 {
			t.Logf("not checked: %s", bytes.TrimSpace(out))
			return "", false
		}
		t.Fatalf("tools/browser/chromium: %v: %s", err, out)
		return "", false
	}
}
