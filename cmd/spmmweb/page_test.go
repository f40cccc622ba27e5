//go:build unix && !js

// The page from end to end, in Chromium: clicks, keys, a dropped file, a download, no network, no WebGPU.
//
// SPMM_SCREENSHOTS=FOLDER keeps the pictures that docs/browser.md shows. SPMM_REQUIRE_BROWSER: the browser must be
// there.

package main_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/conformance"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/mtx"
	"github.com/spmmrun/spmm/formats/npy"
	"github.com/spmmrun/spmm/tools/browser/devtools"
)

// most is how many bytes the page may be, packed.
const most = 2.5e6

type object = map[string]any

// build makes the page's folder.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "run", "-buildmode=pie", "./build", "-root", "../..", "-o", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	m := regexp.MustCompile(`([0-9.]+) MB over the wire`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("build says %q", out)
	}
	if mb, err := strconv.ParseFloat(string(m[1]), 64); err != nil || mb*1e6 > most {
		t.Errorf("the page takes %s MB over the wire, at most %.1f are allowed", m[1], most/1e6)
	}
	return dir
}

// browser starts one; nil, after a word about it, if there is none and none is required.
func browser(t *testing.T) *devtools.Browser {
	t.Helper()
	command := []string{"../../tools/browser/chromium"}
	if os.Getenv("SPMM_REQUIRE_BROWSER") == "" {
		command = append(command, "--cached")
	}
	b, err := devtools.Start(t.Context(), command...)
	if e := (*devtools.StartError)(nil); errors.As(err, &e) && e.Status == 3 && len(command) == 2 {
		t.Logf("not checked: %v", err)
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// tab is a page under test.
type tab struct {
	*testing.T
	p *devtools.Page
}

// open opens the page on a screen of a size.
func open(t *testing.T, b *devtools.Browser, width, height int, scripts ...string) *tab {
	t.Helper()
	p, err := b.Open(func(method string, params json.RawMessage) {
		if method == "Runtime.exceptionThrown" {
			t.Errorf("the page throws %s", params)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	x := &tab{t, p}
	x.call("Emulation.setDeviceMetricsOverride", object{"width": width, "height": height, "deviceScaleFactor": 1,
		"mobile": width < 600})
	for _, s := range scripts {
		x.call("Page.addScriptToEvaluateOnNewDocument", object{"source": s})
	}
	return x
}

func (x *tab) call(method string, params object) {
	x.Helper()
	if err := x.p.Call(method, params, nil); err != nil {
		x.Fatal(err)
	}
}

// visit loads the page.
func (x *tab) visit(url string) {
	x.Helper()
	x.call("Page.navigate", object{"url": url})
	x.await(`location.href.startsWith("http") && document.readyState === "complete" && document.getElementById("adapter").textContent !== "Looking for a GPU…"`)
}

// text evaluates JavaScript whose value is a string.
func (x *tab) text(expression string) (s string) {
	x.Helper()
	if err := x.p.Eval(expression, &s); err != nil {
		x.Fatal(err)
	}
	return s
}

// holds fails the test unless a condition holds.
func (x *tab) holds(condition string) {
	x.Helper()
	var ok bool
	if err := x.p.Eval(condition, &ok); err != nil || !ok {
		x.Errorf("does not hold: %s (%v)", condition, err)
	}
}

// await waits until a condition holds.
func (x *tab) await(condition string) {
	x.Helper()
	for end := time.Now().Add(8 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var ok bool
		if x.p.Eval(condition, &ok) == nil && ok { // errors: while a page loads
			return
		}
	}
	x.Fatalf("waited in vain for %s; status %q", condition, x.text(`document.getElementById("status").textContent`))
}

// press presses a key.
func (x *tab) press(key string, code int, text string) {
	x.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := object{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
		if kind == "keyDown" {
			params["text"] = text
		}
		x.call("Input.dispatchKeyEvent", params)
	}
}

// shoot takes a picture, and keeps it if somebody wants that.
func (x *tab) shoot(name string) {
	x.Helper()
	var shot struct{ Data string }
	if err := x.p.Call("Page.captureScreenshot", object{"format": "png", "captureBeyondViewport": true},
		&shot); err != nil {
		x.Fatal(err)
	}
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
		x.Fatalf("no picture: %v", err)
	}
	if dir := os.Getenv("SPMM_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o666); err != nil {
			x.Fatal(err)
		}
	}
}

func (x *tab) scheme(s string) {
	x.Helper()
	x.call("Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": s}}})
}

func TestPage(t *testing.T) {
	b := browser(t)
	if b == nil {
		return
	}
	site := httptest.NewServer(guarded(t, http.FileServer(http.Dir(build(t)))))
	defer site.Close()
	x := open(t, b, 390, 844)
	x.scheme("light")
	x.visit(site.URL + "/")
	x.holds(`document.getElementById("limits").rows.length > 20 && document.getElementById("trouble").hidden`)
	x.stopsLoading()
	x.policy(t)
	x.suite(t.TempDir())
	x.products(t.TempDir())
	x.stops()
	x.looks()
	x.offline(site)
	withoutWebGPU(t, b)
}

// fewer are some of the sample's cases: a software driver takes longer to compile a kernel than to run it, most of all
// lanestream's.
const fewer = `^(csr|cvse/v8)/f16/(T1±/m67k129n(7|33)/|nonfinite/m67|T3/m67.*/p15)`

// suite runs a part of the sample by the keyboard, and verifies the manifest that is downloaded.
func (x *tab) suite(downloads string) {
	x.call("Browser.setDownloadBehavior", object{"behavior": "allow", "downloadPath": downloads})
	x.text(`const tier = document.getElementById("tier"); tier.selectedIndex = 1; tier.options[1].value = ` + strconv.Quote(fewer) + `; document.getElementById("run").focus(); ""`)
	x.press("Enter", 13, "\r")
	x.await(`!document.getElementById("result").hidden`)
	x.holds(`/^All right: [0-9]{2,} passed/.test(document.getElementById("verdict").textContent)`)
	x.holds(`document.activeElement.id === "verdict"`)
	same := x.text(`document.getElementById("same").innerText`)
	for _, device := range []string{"Same bits as NVIDIA H200 (webgpu)", "Same bits as NVIDIA H200 (cuda)"} {
		if !strings.Contains(same, device) {
			x.Errorf("%q lacks %q", same, device)
		}
	}
	if strings.Contains(same, "Not the same") {
		x.Error(same)
	}
	x.holds(`document.getElementById("cases").rows.length === 3 && document.getElementById("cases").querySelectorAll(".bad").length === 0`)
	// The sample's three classes fit the screen.
	x.holds(`document.getElementById("cases").rows[0].cells.length === 4 && document.getElementById("cases").offsetWidth <= innerWidth`)
	x.shoot("browser-suite")
	x.text(`document.getElementById("download").click(); ""`)
	file := filepath.Join(downloads, "webgpu-google-swiftshader.json")
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			break
		}
		if time.Now().After(end) {
			x.Fatal("the manifest is not downloaded")
		}
	}
	x.verify(file)
	x.holds(`document.getElementById("contribute").hidden`) // a sample is not for others
	x.holds(`/^Device: google swiftshader\nBrowser: HeadlessChrome[^]*only a sample[^]*Same bits as NVIDIA H200 .cuda.: [0-9]+ of [^]*seal [0-9a-f]{64}/.test(document.getElementById("text").value)`)
	x.holds(`new URL(document.getElementById("issue").href).searchParams.get("body") === document.getElementById("text").value`)
}

// verify holds a manifest that was downloaded against what the CPU computes by definition.
func (x *tab) verify(file string) {
	in, err := os.Open(file)
	if err != nil {
		x.Fatal(err)
	}
	defer in.Close()
	m, err := conformance.Decode(in)
	if err != nil {
		x.Fatal(err)
	}
	found := new(conformance.Verifier).Verify(m)
	if found.Right == 0 || len(found.Findings()) > 0 {
		x.Errorf("%d outputs are right, and %q", found.Right, found.Findings())
	}
}

// stopsLoading: so does one that waits for the program to be loaded.
func (x *tab) stopsLoading() {
	x.text(`document.getElementById("run").click(); ""`)
	x.await(`!document.getElementById("stop").hidden`)
	x.holds(`document.getElementById("status").textContent === "Loading the program…"`)
	x.text(`document.getElementById("stop").click(); ""`)
	x.await(`document.getElementById("status").textContent === "Stopped." && !document.getElementById("run").disabled`)
}

// stops: a job ends when it is told to.
func (x *tab) stops() {
	x.text(`document.getElementById("tab-suite").click(); document.getElementById("tier").selectedIndex = 0; document.getElementById("run").click(); ""`)
	x.await(`/^[0-9]+ of /.test(document.getElementById("status").textContent)`)
	x.text(`document.getElementById("stop").click(); ""`)
	x.await(`document.getElementById("status").textContent === "Stopped." && !document.getElementById("run").disabled`)
	x.holds(`getComputedStyle(document.getElementById("stop")).display === "none"`)
}

// products multiplies a file that is dropped, one that is chosen, and one that is none.
func (x *tab) products(dir string) {
	a, err := gen.CSR("gen:powerlaw,rows=300,cols=200,nnz-per-row=10")
	if err != nil {
		x.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range []string{"dropped.mtx", "chosen.npz", "wrong.mtx"} {
		files[name] = filepath.Join(dir, name)
		f, err := os.Create(files[name])
		if err != nil {
			x.Fatal(err)
		}
		switch name {
		case "dropped.mtx":
			err = mtx.Write(f, a)
		case "chosen.npz":
			err = npy.WriteSparse(f, a)
		default:
			_, err = f.WriteString("%%MatrixMarket matrix coordinate real general\n3 3 1\n9 9 1\n")
		}
		if err := errors.Join(err, f.Close()); err != nil {
			x.Fatal(err)
		}
	}
	// Tabs go by the arrow keys.
	x.text(`document.getElementById("tab-suite").focus(); ""`)
	x.press("ArrowRight", 39, "")
	x.holds(`document.activeElement.id === "tab-product" && !document.getElementById("product").hidden && document.getElementById("suite").hidden`)
	for _, kind := range []string{"dragEnter", "dragOver", "drop"} {
		x.call("Input.dispatchDragEvent",
			object{"type": kind, "x": 190, "y": 400, "data": object{"items": []any{}, "files": []string{files["dropped.mtx"]},
				"dragOperationsMask": 1}})
	}
	x.right("dropped.mtx: 300 × 200, ")
	x.text(`document.getElementById("precision").value = "f16"; ""`)
	x.choose(files["chosen.npz"])
	x.right("chosen.npz: 300 × 200, ")
	x.shoot("browser-product")
	x.choose(files["wrong.mtx"])
	x.await(`document.getElementById("status").textContent.startsWith("wrong.mtx")`)
	x.holds(`document.getElementById("progress").hidden`)
}

// choose gives the page a file, as the dialog does.
func (x *tab) choose(file string) {
	x.Helper()
	var input struct{ Result struct{ ObjectID string } }
	if err := x.p.Call("Runtime.evaluate", object{"expression": `document.getElementById("file")`}, &input); err != nil {
		x.Fatal(err)
	}
	x.call("DOM.setFileInputFiles", object{"objectId": input.Result.ObjectID, "files": []string{file}})
}

// right waits for a product that is right, of the matrix of that caption.
func (x *tab) right(caption string) {
	x.Helper()
	x.await(`document.getElementById("progress").hidden && document.getElementById("caption").textContent.startsWith(` + strconv.Quote(caption) + `)`)
	if got := x.text(`document.getElementById("answer").textContent`); !strings.HasPrefix(got, "Right: ") {
		x.Errorf("%s%q; status %q", caption, got, x.text(`document.getElementById("status").textContent`))
	}
	x.holds(`document.getElementById("figures").rows.length === 7`)
	// Some pixels of the spy plot are dark.
	x.holds(`(c => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v, i) => i % 4 === 0 && v < 160))(document.getElementById("spy"))`)
}

// looks checks a phone's width, both colour schemes, and that the page asks nobody else for anything.
func (x *tab) looks() {
	for _, id := range []string{"tab-product", "tab-suite"} {
		x.text(`document.getElementById("` + id + `").click(); ""`)
		x.holds(`document.documentElement.scrollWidth <= innerWidth`)
	}
	x.holds(`performance.getEntriesByType("resource").every(r => r.name.startsWith(location.origin) || r.name.startsWith("blob:"))`)
	x.scheme("dark")
	dark := x.text(`getComputedStyle(document.body).backgroundColor`)
	x.shoot("browser-dark")
	x.scheme("light")
	if light := x.text(`getComputedStyle(document.body).backgroundColor`); light == dark {
		x.Errorf("the background is %s in the dark and the light", dark)
	}
}

// offline loads the page again when its server is gone, and multiplies the example.
func (x *tab) offline(site *httptest.Server) {
	x.text(`navigator.serviceWorker.ready.then(r => "")`)
	site.CloseClientConnections()
	site.Close()
	x.visit(site.URL + "/")
	x.text(`document.getElementById("tab-product").click(); document.getElementById("example").click(); ""`)
	x.right("gen:powerlaw")
}

// guarded has a server send the page's own Content-Security-Policy with every file, as docs/browser.md advises: it then
// holds in the worker too.
func guarded(t *testing.T, h http.Handler) http.Handler {
	text, err := os.ReadFile("site/index.html")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]+)"`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the page has no Content-Security-Policy")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", string(m[1]))
		h.ServeHTTP(w, r)
	})
}

// policy: what is put into the page runs no script and sends nothing to another server.
func (x *tab) policy(t *testing.T) {
	asked := make(chan string, 9)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer elsewhere.Close()
	x.text(`document.body.insertAdjacentHTML("beforeend", '<img src="' + ` + strconv.Quote(elsewhere.URL+"/image") + ` + '" onerror="window.ran = 1">');
		const s = document.createElement("script"); s.textContent = "window.ran = 2"; document.body.append(s); ""`)
	x.text(`fetch(` + strconv.Quote(elsewhere.URL+"/fetch") + `).then(() => "", () => "")`)
	x.text(`new Promise(r => setTimeout(() => r(""), 300))`)
	x.holds("window.ran === undefined")
	// what was asked for here and refused
	x.text(`document.querySelector("body > img").remove(); performance.clearResourceTimings(); ""`)
	select {
	case path := <-asked:
		t.Errorf("the page asks another server for %s", path)
	default:
	}
}

// withoutWebGPU: the page says which browsers have it.
func withoutWebGPU(t *testing.T, b *devtools.Browser) {
	site := httptest.NewServer(http.FileServer(http.Dir("site")))
	defer site.Close()
	x := open(t, b, 1200, 800, `Object.defineProperty(Navigator.prototype, "gpu", { get() { return undefined; } });`)
	x.visit(site.URL + "/")
	x.holds(`/Chrome.*Safari.*Firefox/.test(document.getElementById("trouble").innerText) && document.getElementById("run").disabled`)
}
