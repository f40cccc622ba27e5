// Broken kernels: each must make the suite fail, in the way its fault shows. What is broken is the
// matrix as a kernel packs it, its parameters, its Go function or its WGSL text; on every device there is.
// (Some faults are data races, which the race detector reports.)

package conformance

import (
	"context"
	"encoding/binary"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// mutation is a fault of a kernel.
type mutation struct {
	name   string
	kernel string // "": of each
	filter string // of the cases to run; "": exact and non-finite ones of a few types
	want   string // part of the error of some failed case
	places bool   // it changes which entries there are, which formats that store every element refuse
	table  func(k *spec.Format)
	code   func(b backend.Binary) backend.Binary
}

// someCases are enough to catch most faults.
const someCases = `^[a-z0-9]+(/v8)?/(f16|f32)/(T1.|nonfinite)/(m67k129n7|m67k129n37|m29k60n33|m1k1n1|m21k40n70)/`

// onMatrix breaks the matrix before it is packed.
func onMatrix(f func(a *formats.CSR[float32])) func(*spec.Format) {
	return func(k *spec.Format) {
		encode := k.Encode
		k.Encode = func(a formats.Sparse, v *spec.Variant) (*spec.Packed, error) {
			x := *formats.Convert[float32](a)
			x.RowPtr, x.ColIdx, x.Val = slices.Clone(x.RowPtr), slices.Clone(x.ColIdx), slices.Clone(x.Val)
			f(&x)
			return encode(formats.ConvertTo(&x, v.In), v)
		}
	}
}

// remove takes an entry out.
func remove(a *formats.CSR[float32], e int64) {
	a.ColIdx, a.Val = slices.Delete(a.ColIdx, int(e), int(e)+1), slices.Delete(a.Val, int(e), int(e)+1)
	for i := range a.RowPtr {
		if a.RowPtr[i] > e {
			a.RowPtr[i]--
		}
	}
}

// onParam breaks a parameter, the one of the names that the kernel has.
func onParam(f func(bits uint32) uint32, names ...string) func(*spec.Format) {
	return func(k *spec.Format) {
		launch := k.Launch
		at := slices.IndexFunc(k.Params, func(p spec.Param) bool { return slices.Contains(names, p.Name) })
		k.Launch = func(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
			l, err := launch(v, e, p)
			for _, p := range l.Passes {
				binary.LittleEndian.PutUint32(p.Params[4*at:], f(binary.LittleEndian.Uint32(p.Params[4*at:])))
			}
			return l, err
		}
	}
}

// onArray breaks an array of the packed matrix.
func onArray(name string, f func(data []byte)) func(*spec.Format) {
	return func(k *spec.Format) {
		encode := k.Encode
		k.Encode = func(a formats.Sparse, v *spec.Variant) (*spec.Packed, error) {
			e, err := encode(a, v)
			if err != nil {
				return nil, err
			}
			for i := range e.Arrays {
				if e.Arrays[i].Name == name {
					e.Arrays[i].Data = slices.Clone(e.Arrays[i].Data)
					f(e.Arrays[i].Data)
				}
			}
			return e, nil
		}
	}
}

func add(n int32) func(uint32) uint32 {
	return func(x uint32) uint32 {
		if int64(x)+int64(n) < 0 {
			return x
		}
		return x + uint32(n)
	}
}

const wrongOutputs = "outputs are wrong"

// tableMutations are faults for any device.
func tableMutations() []mutation {
	return []mutation{
		{name: "the last entry of one row is dropped", want: wrongOutputs, places: true,
			table: onMatrix(func(a *formats.CSR[float32]) {
				for i := a.Rows - 1; i >= 0; i-- {
					if a.RowPtr[i+1] > a.RowPtr[i] {
						remove(a, a.RowPtr[i+1]-1)
						return
					}
				}
			})},
		{name: "two entries multiply each other's rows of B", want: wrongOutputs,
			table: onMatrix(func(a *formats.CSR[float32]) {
				for i := range a.Rows {
					if e := a.RowPtr[i]; a.RowPtr[i+1] > e+1 {
						a.Val[e], a.Val[e+1] = a.Val[e+1], a.Val[e]
					}
				}
			})},
		{name: "an entry multiplies the row of B beside its own", want: wrongOutputs, places: true,
			table: onMatrix(func(a *formats.CSR[float32]) {
				for i := range a.Rows {
					if e := a.RowPtr[i]; a.RowPtr[i+1] > e && a.ColIdx[e] > 0 {
						a.ColIdx[e]--
						return
					}
				}
			})},
		{name: "entries that are zero are left out", want: wrongOutputs, places: true,
			table: onMatrix(func(a *formats.CSR[float32]) {
				for e := len(a.Val) - 1; e >= 0; e-- {
					if a.Val[e] == 0 {
						remove(a, int64(e))
					}
				}
			})},
		{name: "one more column is written", want: "was written", table: onParam(add(1), "n")},
		{name: "the last column is left out", want: wrongOutputs, table: onParam(add(-1), "n")},
		{name: "rows of C are taken to be closer", want: "", table: onParam(add(-1), "ldc")},
		{name: "alpha is left out", want: wrongOutputs, table: onParam(func(uint32) uint32 { return math.Float32bits(1) }, "alpha")},
		{name: "C is read although beta is 0", want: wrongOutputs, table: onParam(func(x uint32) uint32 {
			if x == 0 {
				return math.Float32bits(1)
			}
			return x
		}, "beta")},
		{name: "the last row is left out", want: wrongOutputs, kernel: "cvse", table: onParam(add(-1), "rows")},
		{name: "the last item is left out", want: wrongOutputs, kernel: "csr", table: onParam(add(-1), "items")},
		{name: "structural zeros count as entries", want: wrongOutputs, kernel: "cvse",
			table: onArray("mask", func(d []byte) {
				for i := range d {
					d[i] = 0xff
				}
			})},
		{name: "a panel is done twice, another never", want: wrongOutputs, kernel: "cvse",
			table: onArray("work", func(d []byte) {
				const record = 16 // bytes
				if len(d) >= 2*record {
					copy(d, d[record:2*record])
				}
			})},
	}
}

// onGroups runs f after each workgroup of a Go kernel.
func onGroups(f func(args [][]byte, params []byte)) func(backend.Binary) backend.Binary {
	return func(b backend.Binary) backend.Binary {
		inner := b.Func
		var mu sync.Mutex // f may look at what other workgroups write
		b.Func = func(args [][]byte, params []byte, group [3]uint32) {
			mu.Lock()
			defer mu.Unlock()
			inner(args, params, group)
			if len(args) > 2 { // not the dense kernel
				f(args, params)
			}
		}
		return b
	}
}

// cOf is the number of the argument C: the first that is not only read.
func cOf(b backend.Binary) int {
	for i := range b.Args {
		if b.ReadOnly>>i&1 == 0 {
			return i
		}
	}
	return -1
}

// narrowly makes a Go kernel's outputs of type f16 by rounding the f32 ones with a function.
func narrowly(f func(x float32) half.F16) func(backend.Binary) backend.Binary {
	return func(b backend.Binary) backend.Binary {
		inner, c := b.Func, cOf(b)
		store := slices.IndexFunc(paramsOf(b.Name), func(p spec.Param) bool { return p.Name == "store" })
		b.Func = func(args [][]byte, params []byte, group [3]uint32) {
			if store < 0 || binary.LittleEndian.Uint32(params[4*store:])&3 != include.F16 {
				inner(args, params, group)
				return
			}
			block := slices.Clone(params)
			binary.LittleEndian.PutUint32(block[4*store:], binary.LittleEndian.Uint32(params[4*store:])&^3)
			out := backend.View[half.F16](args[c])
			wide := make([]float32, len(out))
			for i := range wide {
				wide[i] = float32(math.Inf(1))
			}
			with := slices.Clone(args)
			with[c] = backend.Bytes(wide)
			inner(with, block, group)
			for i, x := range wide {
				if !math.IsInf(float64(x), 0) {
					out[i] = f(x)
				}
			}
		}
		return b
	}
}

func paramsOf(binary string) []spec.Param {
	for _, k := range shaders.All() {
		if strings.HasPrefix(binary, k.Name+"/") {
			return k.Params
		}
	}
	return nil
}

// truncate rounds toward zero.
func truncate(x float32) half.F16 {
	h := half.F16From(x)
	if math.Abs(float64(h.Float32())) > math.Abs(float64(x)) {
		h--
	}
	return h
}

// goMutations are faults of kernels on the CPU.
func goMutations() []mutation {
	const f16 = `^[a-z0-9]+(/v8)?/f16/T1.*narrow/c:f16`
	var calls atomic.Uint32
	return []mutation{
		{name: "f16 outputs are truncated", want: wrongOutputs, filter: f16, code: narrowly(truncate)},
		{name: "f16 outputs are right", filter: f16, code: narrowly(half.F16From)}, // the mutator itself changes nothing
		{name: "sums are kept in f16", want: wrongOutputs,
			code: rounding(func(x float32) float32 { return half.F16From(x).Float32() })},
		{name: "sums are kept in bf16", want: "past their bound", filter: `^[a-z0-9]+(/v8)?/f32/T2/m67k`,
			code: rounding(func(x float32) float32 { return half.BF16From(x).Float32() })},
		{name: "a byte behind C is written", want: "behind a buffer", code: func(b backend.Binary) backend.Binary {
			c := cOf(b)
			return onGroups(func(args [][]byte, _ []byte) { args[c][len(args[c])-1000] = 1 })(b)
		}},
		{name: "B is written", want: "only read", code: func(b backend.Binary) backend.Binary {
			c := cOf(b)
			return onGroups(func(args [][]byte, _ []byte) { args[c-1][0]++ })(b)
		}},
		{name: "a run is not like the one before", want: "a second run gave other bits", filter: `(f16|f32)/T2/m67k`,
			code: func(b backend.Binary) backend.Binary {
				c := cOf(b)
				return onGroups(func(args [][]byte, _ []byte) {
					// also wrong, but that is seen later
					binary.LittleEndian.PutUint32(args[c], math.Float32bits(1+float32(calls.Add(1))))
				})(b)
			}},
		{name: "a kernel panics", want: "panic", code: onGroups(func(args [][]byte, _ []byte) { _ = args[len(args)] })},
	}
}

// rounding passes every number of C in f32 through f after each workgroup.
func rounding(f func(float32) float32) func(backend.Binary) backend.Binary {
	return func(b backend.Binary) backend.Binary {
		c := cOf(b)
		return onGroups(func(args [][]byte, _ []byte) {
			out := backend.View[float32](args[c])
			for i, x := range out[:len(out)-len(sentinel)/4] {
				out[i] = f(x)
			}
		})(b)
	}
}

// onText replaces text of a kernel's WGSL or PTX.
func onText(kernel, before, after string) mutation {
	m := mutation{name: kernel + ": " + strings.Join(strings.Fields(before), " ") + " → " + after, kernel: kernel}
	m.code = func(b backend.Binary) backend.Binary {
		if strings.HasPrefix(b.Name, kernel+"/") {
			if !strings.Contains(string(b.Code), before) {
				panic("the kernel's text no longer has " + before)
			}
			b.Code = []byte(strings.ReplaceAll(string(b.Code), before, after))
		}
		return b
	}
	return m
}

// textMutations are faults of kernels in WGSL.
func textMutations() []mutation {
	ms := []mutation{
		onText("csr", "e < end; e++", "e + 1u < end; e++"),
		onText("csr", "colidx[e]", "colidx[e ^ 1u]"),
		onText("csr", "lo += sums_lo[i + d * p.across];", ""),
		onText("csr", "nonzero(p.beta)", "true"),
		onText("csr", "col >= p.n", "col > p.n"),
		onText("csr", "c[at] = y;", "c[at + 1u] = y;"),
		onText("cvse", "if (special(y)) { y = entries(first, last, r, j); }", ""),
		onText("cvse", "lesser == 0u", "false"),
		onText("cvse", "row >= p.rows || j >= p.n", "row >= p.rows || j > p.n"),
		onText("cvse", "row >= p.rows || j >= p.n", "j >= p.n"),
		onText("cvse", "i < m; i = i + LOCAL) { stage_cols", "i + 1u < m; i = i + LOCAL) { stage_cols"),
	}
	wants := map[string]string{"col >= p.n": "was written", "row >= p.rows || j >= p.n → row": "was written",
		"row >= p.rows || j >= p.n → j": "behind a buffer", "limit =": "past their bound"}
	sums := onText("cvse", "s < end; s = s + 1u", "s + 1u < end; s = s + 1u") // of parts of heavy panels
	sums.filter = "/onerow/"
	ms = append(ms, sums)
	for _, m := range []mutation{ // of reproducible mode, which serves all formats
		onText("rfx", "(rest != 0u || (a.x & 1u) != 0u)", "true"), // ties are rounded away from zero
		onText("rfx", "((ra | rb) & WILD) != 0u", "false"),
		onText("rfx", "rows[p.columns + k]", "rows[p.columns + (k ^ 1u)]"),
	} {
		m.kernel, m.filter = "", `^[a-z0-9]+/f16/T3/.*/p15`
		ms = append(ms, m)
	}
	for _, m := range []mutation{ // of its epilogues, which cases of csr have
		onText("rfx", "bias[row << shift]", "bias[row]"),
		onText("rfx", "y = plus(y, bias[j << shift]);", ""),
		onText("rfx", "max(bitcast<i32>(x), 0)", "bitcast<i32>(x)"),
	} {
		m.kernel, m.filter = "csr", `^csr/f16/T3/.*(bias-row|bias-col/relu)/p`
		ms = append(ms, m)
	}
	for _, m := range []mutation{ // of epilogues in fast mode
		onText("csr", "bias[row << shift]", "bias[row]"),
		onText("csr", "limit = 0x41200000u", "limit = 0x40000000u"),
	} {
		m.kernel, m.filter = "csr", `^csr/f16/(T1±/.*bias-row/relu/ldpad|T2/.*gelu)`
		ms = append(ms, m)
	}
	for i := range ms {
		ms[i].want = wrongOutputs
		for start, want := range wants {
			if _, change, _ := strings.Cut(ms[i].name, ": "); strings.HasPrefix(change, start) {
				ms[i].want = want
			}
		}
	}
	return ms
}

// ptxMutations are faults of kernels in PTX.
func ptxMutations() []mutation {
	m := onText("csr", "cvt.rn.f16x2.f32", "cvt.rz.f16x2.f32")
	m.want, m.filter = wrongOutputs, `^csr/f16/T1.*narrow/c:f16`
	return []mutation{m}
}

// problems are those of all tests: the same ones.
var problems = newInstanceCache()

// catch runs some cases with a mutation, and fails unless it shows as it should.
func catch(t *testing.T, dev backend.Device, cache *kernelCache, m mutation) {
	filter := m.filter
	if filter == "" {
		filter = someCases
	}
	o := Options{Filter: regexp.MustCompile(filter), mutate: m.code, instances: problems, compiled: cache}
	for _, k := range multiplied(dev) {
		if m.kernel != "" && k.Name != m.kernel || m.places && k.Full {
			continue
		}
		x := *k
		if m.table != nil {
			m.table(&x)
		}
		o.kernels = append(o.kernels, &x)
	}
	man, err := Run(context.Background(), dev, o)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]int{}
	var errs []string
	for _, c := range man.Cases {
		if c.Status == Fail {
			failed[c.kernel()]++
			errs = append(errs, c.Error)
		}
	}
	changes := m.table != nil || m.want != ""
	for _, k := range o.kernels {
		if (failed[k.Name] > 0) != changes {
			t.Errorf("%d cases of %s fail; the fault must show: %v\n%s", failed[k.Name], k.Name, changes,
				strings.Join(errs, "\n"))
		}
	}
	if changes && !slices.ContainsFunc(errs, func(e string) bool { return strings.Contains(e, m.want) }) {
		t.Errorf("no error tells of %q: %q", m.want, errs[:min(3, len(errs))])
	}
}

func TestMutations(t *testing.T) {
	devices(t, func(t *testing.T, dev backend.Device) {
		ms := append([]mutation{{name: "none"}}, tableMutations()...)
		switch dev.Caps().Code {
		case backend.CodeGo:
			ms = append(ms, goMutations()...)
		case backend.CodeWGSL:
			ms = append(ms, textMutations()...)
		case backend.CodePTX:
			ms = append(ms, ptxMutations()...)
		}
		cache := newKernelCache()
		defer cache.close()
		for _, m := range ms {
			t.Run(m.name, func(t *testing.T) { catch(t, dev, cache, m) })
		}
	})
}
