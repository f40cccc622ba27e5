// The runner: cases times the variants that a device runs, in a fixed order, into a manifest.

package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Options are the options of Run. The zero value is the quick tier.
type Options struct {
	Tier   Tier           // Quick if empty
	Filter *regexp.Regexp // of cases' names; nil: all
	// Progress, if set, is called after each case and variant with the number of cases done and in all.
	Progress func(done, all int, r *Result)
	// Partial, if set, is called when the run ends early, because the context is done or the device is lost, with the
	// manifest of the cases that have run: it is marked as incomplete, and has no probes. Where none has, it is not
	// called. Run returns after it.
	Partial func(m *Manifest)
	// Unlisted also runs variants for matrix shapes that the device does not list, made over for its
	// subgroup size. For drivers that compute any shape (Mesa's for CPUs).
	Unlisted bool
	// Rotate, with Unlisted, runs one of these shapes in each kernel, and different ones as far as possible, but none in
	// kernels of large tiles: such a driver compiles for minutes. The manifest is not that of a whole run.
	Rotate bool
	// Bare leaves out the sentinel bytes behind buffers and the canaries between them, so that a tool
	// which watches memory itself (compute-sanitizer) sees reads past a buffer's end too.
	Bare   bool
	Commit string // of the source; "": as the build recorded it

	kernels   []*spec.Format // nil: all formats
	instances *instanceCache // of instances that other runs have built; nil: an empty one
	compiled  *kernelCache   // of kernels that other runs on the device have loaded; nil: an empty one
	other     *kernelCache   // the same of the other device

	group *grouping // nil: the device by itself

	// Faults, for tests:
	mutate func(backend.Binary) backend.Binary // of code as it is loaded
	spoil  func(p *instance) *instance         // of what is multiplied, after it is known what must come out
	after  func(o *outputs)                    // of what came out
	stray  bool                                // something is written behind a buffer
}

// runner runs one case after the other, at the same time as other runners on the same device.
type runner struct {
	Options
	dev     *guard
	door    *spmm.Device // the same device, or with the other
	may     *eligibility
	loaded  map[*spec.Variant]loaded
	ran     map[string]Variant
	waivers []Waiver  // that were needed
	last    *instance // the one of the case at hand

	second *guard // another device; nil: none
}

type loaded struct {
	kernel backend.Kernel
	err    error
}

// Run runs the suite on a device, which stays open. It returns an error if it cannot continue: the context is done, the
// device is lost, or no case is selected. Failed cases are not errors: see the manifest's summary.
func Run(ctx context.Context, dev backend.Device, o Options) (*Manifest, error) {
	if o.Tier == "" {
		o.Tier = Quick
	}
	if o.Tier != Quick && o.Tier != Full {
		return nil, fmt.Errorf("unknown tier %q (quick or full)", o.Tier)
	}
	if o.kernels == nil {
		o.kernels = shaders.Formats()
	}
	if o.instances == nil {
		o.instances = newInstanceCache()
	}
	keep := func(id string) bool {
		return o.Filter == nil || o.Filter.MatchString(id)
	}
	tests := list(o.kernels, o.Tier, keep)
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
	if o.group != nil {
		o.other = newKernelCache()
		defer o.other.close()
	}
	return runAll(ctx, dev, o, tests)
}

// runAll runs tests on several runners, one for each processor, and joins what they record in the tests' order: judging
// outputs takes longer than a device's product.
func runAll(ctx context.Context, dev backend.Device, o Options, tests []test) (*Manifest, error) {
	runners := make([]*runner, min(runtime.GOMAXPROCS(0), len(tests)))
	for i := range runners {
		r, err := newRunner(dev, o)
		if err != nil {
			return nil, err
		}
		defer r.close()
		runners[i] = r
	}
	rec := newRecord(o.Progress, len(tests))
	// What has run is handed over at once: a runner may be in a launch that does not end.
	partial := sync.OnceFunc(func() { rec.partial(runners[0].manifest(), o.Partial) })
	stop := context.AfterFunc(ctx, partial)
	var next atomic.Int64
	all, each := errgroup.WithContext(ctx)
	if o.mutate == nil {
		may := o.eligibility(dev) // runners have their own, which is for one goroutine
		all.Go(func() error { o.compiled.preload(each, dev, may, tests); return nil })
	}
	for _, r := range runners {
		all.Go(func() error {
			for i := next.Add(1) - 1; i < int64(len(tests)); i = next.Add(1) - 1 {
				found, err := r.one(each, &tests[i], rec.report)
				if err != nil {
					return fmt.Errorf("case %s: %w", tests[i].id(), err)
				}
				rec.add(int(i), found, r)
			}
			return nil
		})
	}
	var m *Manifest
	err := all.Wait()
	if err == nil {
		m, err = finish(ctx, runners[0], rec)
	}
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		partial()
		return nil, err
	}
	return m, nil
}

// eligibility answers which variants run on a device.
func (o *Options) eligibility(dev backend.Device) *eligibility {
	may := newEligibility(dev.Caps(), o.Unlisted)
	if o.Rotate {
		may.rotate()
	}
	return may
}

func newRunner(dev backend.Device, o Options) (*runner, error) {
	g := newGuard(dev, o.compiled)
	g.bare, g.mutate, g.stray = o.Bare, o.mutate, o.stray
	r := &runner{
		Options: o, dev: g, door: spmm.NewDevice(g), may: o.eligibility(dev),
		loaded: map[*spec.Variant]loaded{}, ran: map[string]Variant{},
	}
	if o.group == nil {
		return r, nil
	}
	r.second = newGuard(o.group.other, o.other)
	var err error
	r.door, err = spmm.Join(r.door, spmm.NewDevice(r.second))
	if err != nil {
		r.close()
	}
	return r, err
}

func (r *runner) close() {
	for _, l := range r.loaded {
		if l.kernel != nil {
			l.kernel.Close()
		}
	}
	r.dev.drop()
	if r.second != nil {
		r.second.drop()
	}
}

// intact checks the memory of each device.
func (r *runner) intact(ctx context.Context) error {
	if r.second == nil {
		return r.dev.intact(ctx)
	}
	return errors.Join(r.dev.intact(ctx), r.second.intact(ctx))
}

// manifest is the head of the record.
func (r *runner) manifest() *Manifest {
	m := &Manifest{
		Schema: Schema, Suite: Suite, Tier: r.Tier, Bare: r.Bare, Unlisted: r.Unlisted, Commit: r.Commit,
		Go: runtime.Version(), Device: r.dev.Info(),
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

// finish is the manifest of a run that has come to its end.
func finish(ctx context.Context, r *runner, rec *record) (*Manifest, error) {
	m := r.manifest()
	r.spoil = nil // it fits the cases' sizes
	if err := r.probes(ctx, m); err != nil {
		return nil, err
	}
	return m, rec.whole(m, r)
}

// one runs a case with each variant of the device that it is for, reports the outcomes (the last of them as such) and
// returns them.
func (r *runner) one(ctx context.Context, t *test, report func(last bool, x *Result)) ([]Result, error) {
	r.last = r.instance(t.recipe)
	base := Result{ID: t.id(), Input: r.last.digest()}
	vs, listed := r.may.variants(t)
	if len(vs) == 0 {
		base.Status = Unsupported
		base.Error = "the device has the capabilities for no variant"
		report(true, &base)
		return []Result{base}, nil
	}
	results := make([]Result, 0, len(vs))
	for i, v := range vs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if v != nil {
			r.note(t.kernel.Program, v, i >= listed)
		}
		res := base
		err := r.multiply(ctx, t, v, &res)
		if errors.Is(err, backend.ErrDeviceLost) || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		r.settle(t, v, &res, err)
		report(i == len(vs)-1, &res)
		results = append(results, res)
	}
	return results, nil
}

// instance returns the instance of a recipe, which often is the last case's.
func (r *runner) instance(of recipe) *instance {
	if r.last != nil && r.last.of == of {
		return r.last
	}
	return r.instances.get(of)
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
		r.waivers = append(r.waivers, *w)
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
		out, _, err = r.front(ctx, t, r.last, spmm.Options{Format: t.kernel.Name, Variant: v.Name, Precision: t.prec,
			Quantise: t.target.quant, Cols: t.n})
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
		ratio, err := general(ctx, t, p, v, out)
		if err != nil && hasSubnormal(t.kind) {
			if flushed, none := general(ctx, t, p.flushed(), v, out); none == nil {
				ratio, err, res.Note = flushed, nil, flushedNote
			}
		}
		res.Ratio = ratio
		return err
	}
	res.P, res.Lossless = p.bits, p.lossless
	err := out.differ(round(t.c, p.m, p.n, p.want))
	for _, alt := range p.alternatives {
		if err != nil && out.differ(round(t.c, p.m, p.n, alt)) == nil {
			res.Note, err = flushedNote, nil
		}
	}
	return err
}

// flushedNote is a result's note on a device that flushes.
const flushedNote = "subnormal operands are taken for zero"

// general says how far outputs of class T2 are off, by their bound, and what is wrong with them.
func general(ctx context.Context, t *test, p *instance, v *spec.Variant, out *outputs) (*float64, error) {
	q, err := p.quantised()
	if err != nil {
		return nil, err
	}
	check, err := oracle.Check(ctx, oracle.ProblemOf[float64]{
		Quantised: q, A: p.a, B: p.b, C: p.c, Alpha: p.alpha, Beta: p.beta, Epilogue: p.finish(), Compute: v.In, Out: t.c,
		Splits: 1,
	}, out.dense(), 0)
	if err != nil {
		return nil, err
	}
	ratio := math.Min(check.MaxRatio, math.MaxFloat32) // JSON has no infinity
	if !check.OK() {
		err = fmt.Errorf("%d of %d outputs are past their bound: %w", check.Bad, check.Checked, check.First)
	}
	return &ratio, err
}

// note records a variant.
func (r *runner) note(k *spec.Program, v *spec.Variant, unlisted bool) {
	x := Variant{Name: k.Name + "/" + v.Name, Local: v.Local, Subgroup: v.Sub, Matrix: len(v.Need.Shapes) > 0 || v.Matrix,
		Unlisted: unlisted}
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
