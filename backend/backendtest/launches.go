// Launches: order, grids, parameters, arguments, repeatability, timing and the cost of a call.

package backendtest

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
)

var launching = []subtest{
	{"launches in order", inOrder},
	{"more launches than fit a batch", manyLaunches},
	{"copies and launches in order", copiesInOrder},
	{"grid in three dimensions", grid3},
	{"many groups", manyGroups},
	{"zero-sized grid", zeroGrid},
	{"no launches", noLaunches},
	{"parameters", parameters},
	{"eight arguments", eightArgs},
	{"one buffer as several read-only arguments", sharedArg},
	{"shared memory and constants", sharedMemory},
	{"several kernels in one run", severalKernels},
	{"same bits on repeat", repeats},
	{"timing", timing},
	{"repeated runs allocate little", allocations},
}

// steps are launches whose results depend on their order, going back and forth between two buffers.
func steps(k backend.Kernel, a, b backend.Buffer, n, count int) (ls []backend.Launch, want []uint32) {
	want = ramp(n)
	for i := range uint32(count) {
		s := step{n: uint32(n), rot: i * 97 % uint32(n), mul: 2*i + 3, add: i}
		ls = append(ls, stepLaunch(k, a, b, s))
		want = s.apply(want)
		a, b = b, a
	}
	return ls, want
}

// Each launch sees what all workgroups of the one before wrote.
func inOrder(t *testing.T, r *rig) {
	k := r.load(t, "step")
	for _, n := range []int{1, 63, 65, 10_007} {
		a, b := r.upload(t, ramp(n)), r.alloc(t, int64(4*n))
		ls, want := steps(k, a, b, n, 100)
		r.run(t, ls...)
		equalWords(t, "100 launches in one run", read(t, a, n), want)

		Write(t, a, ramp(n))
		for _, l := range ls {
			r.run(t, l)
		}
		equalWords(t, "100 runs", read(t, a, n), want)
	}
}

// However a backend divides a run, launches stay in order and each has its own parameters.
func manyLaunches(t *testing.T, r *rig) {
	const n = 200
	k, a, b := r.load(t, "step"), r.upload(t, ramp(n)), r.alloc(t, 4*n)
	ls, want := steps(k, a, b, n, 1500)
	for range 2 {
		Write(t, a, ramp(n))
		r.run(t, ls...)
		equalWords(t, "1500 launches in one run", read(t, a, n), want)
	}
}

func copiesInOrder(t *testing.T, r *rig) {
	const n = 3000
	k, a, b := r.load(t, "step"), r.alloc(t, 4*n), r.alloc(t, 4*n)
	for i := range uint32(10) {
		in := ramp(n)
		in[0] = i
		Write(t, a, in)
		s := step{n: n, rot: i, mul: 3, add: i}
		r.run(t, stepLaunch(k, a, b, s))
		equalWords(t, "run after a write", read(t, b, n), s.apply(in))
	}
}

func grid3(t *testing.T, r *rig) {
	k := r.load(t, "grid")
	for _, n := range [][3]uint32{{1, 1, 1}, {13, 1, 1}, {1, 17, 1}, {1, 1, 9}, {9, 5, 3}, {33, 29, 11}} {
		count := n[0] * n[1] * n[2]
		want := slices.Repeat([]uint32{0xdeadbeef}, int(count)+32) // 32 words of sentinels
		dst := r.upload(t, want)
		r.run(t, gridLaunch(k, dst, n))
		for i := range count {
			want[i] = i%n[0] | i/n[0]%n[1]<<10 | i/n[0]/n[1]<<20
		}
		equalWords(t, "grid", read(t, dst, len(want)), want)
	}
}

func gridLaunch(k backend.Kernel, dst backend.Buffer, n [3]uint32) backend.Launch {
	return backend.Launch{Kernel: k, Groups: [3]uint32{(n[0] + 3) / 4, (n[1] + 1) / 2, (n[2] + 1) / 2},
		Args: []backend.Buffer{dst}, Params: params(n[0], n[1], n[2])}
}

// Every device offers 65535 workgroups in one dimension.
func manyGroups(t *testing.T, r *rig) {
	const n = 65535*64 - 5
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(n)), r.alloc(t, 4*n)
	s := step{n: n, rot: 12345, mul: 7, add: 1}
	r.run(t, stepLaunch(k, src, dst, s))
	equalWords(t, "65535 groups", read(t, dst, n), s.apply(ramp(n)))
}

func zeroGrid(t *testing.T, r *rig) {
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.upload(t, ramp(64))
	l := stepLaunch(k, src, dst, step{n: 64, mul: 9})
	for i := range 3 {
		z := l
		z.Groups = [3]uint32{1, 1, 1}
		z.Groups[i] = 0
		r.run(t, z)
		equalWords(t, "zero-sized grid", read(t, dst, 64), ramp(64))
		r.run(t, z, l, z)
		equalWords(t, "launch between zero-sized grids", read(t, dst, 64), step{n: 64, mul: 9}.apply(ramp(64)))
		Write(t, dst, ramp(64))
	}
}

func noLaunches(t *testing.T, r *rig) {
	r.run(t)
	r.works(t)
}

func parameters(t *testing.T, r *rig) {
	k, dst := r.load(t, "echo"), r.alloc(t, 64)
	for _, u := range []uint32{0, 1, 0x01020304, math.MaxUint32} {
		f := float32(u)/3 - 7
		l := backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{dst},
			Params: params(u, u+1, u+2, u+3, u+4, u+5, u+6, u+7, f, -f, f*2, f*3, f*4, f*5, f*6, f*7)}
		var want []uint32
		for i := range uint32(8) {
			want = append(want, u+i)
		}
		for _, x := range []float32{f, -f, f * 2, f * 3, f * 4, f * 5, f * 6, f * 7} {
			want = append(want, math.Float32bits(x*0.5))
		}
		r.run(t, l)
		equalWords(t, "64 bytes of parameters", read(t, dst, 16), want)
	}
	// The block belongs to the caller again once Run returns, and each launch of a run has its own.
	second := r.alloc(t, 64)
	p, q := params(slices.Repeat([]any{uint32(1)}, 16)...), params(slices.Repeat([]any{uint32(2)}, 16)...)
	l := backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{dst}, Params: p}
	m := l
	m.Args, m.Params = []backend.Buffer{second}, q
	r.run(t, l, m)
	clear(p)
	if a, b := read(t, dst, 8), read(t, second, 8); a[7] != 1 || b[7] != 2 {
		t.Errorf("two launches of one run saw parameters %d and %d, want 1 and 2", a[7], b[7])
	}
}

func eightArgs(t *testing.T, r *rig) {
	const n = 64 * 5
	k := r.load(t, "sum")
	args := make([]backend.Buffer, 8)
	want := make([]uint32, n)
	for a := range args {
		in := ramp(n)
		for i := range in {
			in[i] ^= uint32(a) << 28
			if a < 7 {
				want[i] += uint32(a+1) * in[i]
			}
		}
		args[a] = r.upload(t, in)
	}
	r.run(t, backend.Launch{Kernel: k, Groups: [3]uint32{n / 64, 1, 1}, Args: args})
	equalWords(t, "sum of seven inputs", read(t, args[7], n), want)
	equalWords(t, "first input", read(t, args[0], n), ramp(n))
}

func sharedArg(t *testing.T, r *rig) {
	k, in, dst := r.load(t, "sum"), r.upload(t, ramp(64)), r.alloc(t, 256)
	args := append(slices.Repeat([]backend.Buffer{in}, 7), dst)
	r.run(t, backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: args})
	equalWords(t, "28 times the input", read(t, dst, 64), step{n: 64, mul: 28}.apply(ramp(64)))
}

func sharedMemory(t *testing.T, r *rig) {
	const n = 64 * 7
	k, src, dst := r.load(t, "tile"), r.upload(t, ramp(n)), r.alloc(t, 4*n)
	r.run(t, backend.Launch{Kernel: k, Groups: [3]uint32{n / 64, 1, 1}, Args: []backend.Buffer{src, dst}})
	want := ramp(n)
	for i := 0; i < n; i += 64 {
		slices.Reverse(want[i : i+64])
	}
	equalWords(t, "groups reversed", read(t, dst, n), step{n: n, mul: 1, add: tileAdd}.apply(want))
}

func severalKernels(t *testing.T, r *rig) {
	st, ti, a, b, c := r.load(t, "step"), r.load(t, "tile"), r.upload(t, ramp(64)), r.alloc(t, 256), r.alloc(t, 256)
	s := step{n: 64, rot: 5, mul: 3, add: 1}
	r.run(t, stepLaunch(st, a, b, s),
		backend.Launch{Kernel: ti, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{b, c}},
		stepLaunch(st, c, a, s))
	want := s.apply(ramp(64))
	slices.Reverse(want)
	equalWords(t, "three launches", read(t, a, 64), s.apply(step{n: 64, mul: 1, add: tileAdd}.apply(want)))
}

func repeats(t *testing.T, r *rig) {
	const n = 5000
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(n)), r.alloc(t, 4*n)
	var first []uint32
	for range 20 {
		Write(t, dst, make([]uint32, n))
		r.run(t, stepLaunch(k, src, dst, step{n: n, rot: 1, mul: 11, add: 3}))
		got := read(t, dst, n)
		if first == nil {
			first = got
		}
		equalWords(t, "repeat", got, first)
	}
}

func timing(t *testing.T, r *rig) {
	const n = 1 << 20
	k, a, b := r.load(t, "step"), r.upload(t, ramp(n)), r.alloc(t, 4*n)
	start := time.Now()
	tm := r.run(t, stepLaunch(k, a, b, step{n: n, rot: 1, mul: 3}), stepLaunch(k, b, a, step{n: n, rot: 1, mul: 3}))
	wall := time.Since(start)
	if tm.Host <= 0 || tm.Host > wall {
		t.Errorf("Host time %v of a call that took %v", tm.Host, wall)
	}
	if tm.Device < 0 || tm.Device > 2*wall+time.Millisecond {
		t.Errorf("Device time %v of a call that took %v", tm.Device, wall)
	}
	if tm.Best() <= 0 {
		t.Errorf("Best is %v", tm.Best())
	}
}

// maxAllocs is how many heap objects a repeated Run may cost. Zero is the aim; bindings that box their arguments need
// some.
const maxAllocs = 16

func allocations(t *testing.T, r *rig) {
	k, a, b := r.load(t, "step"), r.upload(t, ramp(64)), r.alloc(t, 256)
	ls := []backend.Launch{stepLaunch(k, a, b, step{n: 64, mul: 3})}
	ctx := t.Context()
	got := testing.AllocsPerRun(50, func() {
		if _, err := r.dev.Run(ctx, ls...); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("a repeated Run of one launch makes %.1f heap allocations", got)
	if got > maxAllocs {
		t.Errorf("a repeated Run makes %.1f heap allocations, at most %d are allowed", got, maxAllocs)
	}
}
