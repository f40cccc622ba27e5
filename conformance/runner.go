// The runner: cases times the variants that a device runs, in a fixed order, into a manifest.

package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Options say what to run. The zero value is the quick tier.
type Options struct {
	Tier   Tier           // Quick if empty
	Filter *regexp.Regexp // of cases' names; nil: all
	// Suite runs the cases of an earlier version of the suite; "" is this one. Which there are: Suites.
	Suite string
	// Progress, if set, is called after each case and variant with the number of cases done and in all.
	Progress func(done, all int, r *Result)
	// Unlisted also runs variants for matrix shapes that the device does not list, made over for its
	// subgroup size. For drivers that compute any shape (Mesa's for CPUs).
	Unlisted bool
	// Bare leaves out the sentinel bytes behind buffers and the canaries between them, so that a tool
	// which watches memory itself (compute-sanitizer) sees reads past a buffer's end too.
	Bare   bool
	Commit string // of the source; "": as the build recorded it

	kernels   []*spec.Format // nil: all formats
	instances *instanceCache // of instances that other runs have built; nil: an empty one
	compiled  *kernelCache   // of kernels that other runs on the device have loaded; nil: an empty one

	group *grouping // nil: the device by itself

	// Faults, for tests:
	mutate func(backend.Binary) backend.Binary // of code as it is loaded
	spoil  func(p *instance) *instance         // of what is multiplied, after it is known what must come out
	after  func(o *outputs)                    // of what came out
	stray  bool                                // something is written behind a buffer
}

// runner is one run.
type runner struct {
	Options
	dev    *guard
	door   *spmm.Device // the same device
	may    *eligibility
	loaded map[*spec.Variant]loaded
	ran    map[string]Variant
	man    *Manifest
	report func(*Result)
	last   *instance // the one of the case at hand

	devices *spmm.Group // with another device
	second  *guard
}

type loaded struct {
	kernel backend.Kernel
	err    error
}

// Run runs the suite on a device, which stays open. It returns an error when it could not go on: the
// context is done, the device lost, no case selected. Failed cases are not errors: look at the
// manifest's summary.
func Run(ctx context.Context, dev backend.Device, o Options) (*Manifest, error) {
	if o.Tier == "" {
		o.Tier = Quick
	}
	if o.Tier != Quick && o.Tier != Full {
		return nil, fmt.Errorf("unknown tier %q (quick or full)", o.Tier)
	}
	if o.Suite == "" {
		o.Suite = Suite
	}
	suite, err := suiteNumber(o.Suite)
	if err != nil {
		return nil, err
	}
	if o.kernels == nil {
		o.kernels = shaders.Formats()
	}
	if o.instances == nil {
		o.instances = newInstanceCache()
	}
	keep := func(id string) bool { return o.Filter == nil || o.Filter.MatchString(id) }
	tests := list(o.kernels, suite, o.Tier, keep)
	if o.group != nil {
		tests = o.group.forGroup(tests)
	}
	if len(tests) == 0 {
		return nil, errors.New("no case has a name that the filter selects")
	}
	if o.compiled == nil {
		o.compiled = newKernelCache()
		defer o.compiled.close()
	}
	g := newGuard(dev, o.compiled)
	g.bare, g.mutate, g.stray = o.Bare, o.mutate, o.stray
	r := &runner{
		Options: o, dev: g, door: spmm.NewDevice(g), may: newEligibility(dev.Caps(), o.Unlisted),
		loaded: map[*spec.Variant]loaded{}, ran: map[string]Variant{},
	}
	defer r.close()
	if o.group != nil {
		cache := newKernelCache()
		defer cache.close()
		r.second = newGuard(o.group.other, cache)
		defer r.second.drop()
		if r.devices, err = spmm.NewGroup(r.door, spmm.NewDevice(r.second)); err != nil {
			return nil, err
		}
	}
	r.man = r.manifest()
	for i := range tests {
		r.report = func(x *Result) {
			if o.Progress != nil {
				o.Progress(i+1, len(tests), x)
			}
		}
		if err := r.one(ctx, &tests[i]); err != nil {
			return nil, fmt.Errorf("case %s: %w", tests[i].id(), err)
		}
	}
	r.spoil = nil // it fits the cases' sizes
	if err := r.probes(ctx); err != nil {
		return nil, err
	}
	return r.man, r.finish()
}

func (r *runner) close() {
	for _, l := range r.loaded {
		if l.kernel != nil {
			l.kernel.Close()
		}
	}
	r.dev.drop()
}

// manifest is the head of the record.
func (r *runner) manifest() *Manifest {
	m := &Manifest{
		Schema: Schema, Suite: r.Suite, Tier: r.Tier, Bare: r.Bare, Unlisted: r.Unlisted, Commit: r.Commit, Go: runtime.Version(), Device: r.dev.Info(),
		Caps:    recordCaps(r.dev.Caps()),
		Summary: map[Status]int{},
	}
	if r.Filter != nil {
		m.Filter = r.Filter.String()
	}
	if m.Commit == "" {
		m.Commit = buildCommit()
	}
	return m
}

// buildCommit is the commit that the build recorded, if it did.
func buildCommit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + dirty
}

// finish fills in what only the end of the run knows.
func (r *runner) finish() error {
	for _, name := range slices.Sorted(maps.Keys(r.dev.modules)) {
		r.man.Modules = append(r.man.Modules, r.dev.modules[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.ran)) {
		r.man.Variants = append(r.man.Variants, r.ran[name])
	}
	for _, c := range r.man.Cases {
		r.man.Summary[c.Status]++
	}
	var err error
	r.man.Seal, err = r.man.seal()
	return err
}

// one runs a case with each variant of the device that it is for, and records the outcomes.
func (r *runner) one(ctx context.Context, t *test) error {
	r.last = r.instances.get(t.recipe)
	base := Result{ID: t.id(), Tier: t.tier, Generator: t.recipe.name(), Seed: t.seed, Input: r.last.digest()}
	vs, listed := r.may.variants(t)
	if len(vs) == 0 {
		base.Status = Unsupported
		base.Error = "the device has the capabilities for no variant"
		r.record(base)
		return nil
	}
	for i, v := range vs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if v != nil {
			r.note(t.kernel.Program, v, i >= listed)
		}
		res := base
		err := r.multiply(ctx, t, v, &res)
		if errors.Is(err, backend.ErrDeviceLost) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		r.settle(t, v, &res, err)
		r.record(res)
	}
	return nil
}

// record adds an outcome to the manifest.
func (r *runner) record(x Result) {
	r.man.Cases = append(r.man.Cases, x)
	r.report(&r.man.Cases[len(r.man.Cases)-1])
}

// settle turns the error of a case into its status.
func (r *runner) settle(t *test, v *spec.Variant, res *Result, err error) {
	if v != nil {
		res.Variant = v.Name
	}
	res.Status = Pass
	if err == nil {
		return
	}
	res.Error = err.Error()
	res.Status = Fail
	if errors.Is(err, backend.ErrUnsupported) && refuses(t, r.last, v, r.dev.Caps()) {
		res.Status = Unsupported
		return
	}
	if w := waiverFor(r.dev.Info(), v, t.class); w != nil && errors.As(err, new(wrong)) {
		res.Status = Waived
		if !slices.Contains(r.man.Waivers, *w) {
			r.man.Waivers = append(r.man.Waivers, *w)
		}
	}
}

// wrong is the error of outputs that are not right; others are of memory, or of launching at all.
type wrong struct{ error }

// multiply runs one case with one variant and judges its outputs. A panic of host code is its error.
func (r *runner) multiply(ctx context.Context, t *test, v *spec.Variant, res *Result) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	if t.class == Reproducible && t.path != direct {
		return r.t3(ctx, t, res)
	}
	var out *outputs
	if t.path == direct {
		out, res.Grid, err = r.direct(ctx, t, r.last, v)
	} else {
		out, _, err = r.front(ctx, t, r.last, spmm.Options{Format: t.kernel.Name, Variant: v.Name, Precision: t.prec, Quantise: t.target.quant, Cols: t.n})
	}
	if err != nil {
		return err
	}
	if r.after != nil {
		r.after(out)
	}
	res.Output = out.digest()
	if err := r.judge(ctx, t, v, out, res); err != nil {
		return wrong{err}
	}
	return nil
}

// judge says what is wrong with outputs.
func (r *runner) judge(ctx context.Context, t *test, v *spec.Variant, out *outputs, res *Result) error {
	p := r.last
	if t.class == General {
		q, err := p.quantised()
		if err != nil {
			return err
		}
		check, err := oracle.Check(ctx, oracle.ProblemOf[float64]{
			Quantised: q, A: p.a, B: p.b, C: p.c, Alpha: p.alpha, Beta: p.beta, Epilogue: p.finish(), Compute: v.In, Out: t.c, Splits: 1,
		}, out.dense(), 0)
		if err != nil {
			return err
		}
		ratio := math.Min(check.MaxRatio, math.MaxFloat32) // JSON has no infinity
		res.Ratio = &ratio
		if !check.OK() {
			return fmt.Errorf("%d of %d outputs are past their bound: %w", check.Bad, check.Checked, check.First)
		}
		return nil
	}
	res.P, res.Lossless = p.bits, p.lossless
	err := out.differ(round(t.c, p.m, p.n, p.want))
	for _, alt := range p.alternatives {
		if err != nil && out.differ(round(t.c, p.m, p.n, alt)) == nil {
			res.Note, err = "subnormal operands are taken for zero", nil
		}
	}
	return err
}

// note records a variant.
func (r *runner) note(k *spec.Program, v *spec.Variant, unlisted bool) {
	x := Variant{Name: k.Name + "/" + v.Name, Local: v.Local, Subgroup: v.Sub, Matrix: len(v.Need.Shapes) > 0 || v.Matrix, Unlisted: unlisted}
	for _, c := range v.Consts {
		if x.Consts == nil {
			x.Consts = map[string]uint32{}
		}
		x.Consts[c.Name] = c.Value
	}
	r.ran[x.Name] = x
}

// load loads a variant's code once.
func (r *runner) load(k *spec.Program, v *spec.Variant) (backend.Kernel, error) {
	if l, ok := r.loaded[v]; ok {
		return l.kernel, l.err
	}
	bin, err := k.Binary(v)
	if err != nil {
		return nil, err
	}
	l, err := r.dev.Load(bin)
	r.loaded[v] = loaded{l, err}
	return l, err
}
