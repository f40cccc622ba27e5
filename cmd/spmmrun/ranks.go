// Several ranks: this process as one of those that mpirun or srun started.

package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/local"
	"github.com/spmmrun/spmm/comm/mpi"
	"github.com/spmmrun/spmm/comm/nccl"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/mtx"
	"github.com/spmmrun/spmm/internal/memory"
)

// ranks are those of the job, seen from this process.
type ranks struct {
	comm.Comm
	launch  mpi.Launch
	library string // the version of MPI's, "" for one process
	whyHost string // why ranks with GPUs exchange through the host's memory

	device *spmm.Device // of a rank that is a goroutine; else nil
}

// withRanks runs f as one of the ranks that a launcher started, or as the only one. An error that ranks did not agree
// on ends the job: others may be waiting for this one.
func withRanks(stderr io.Writer, f func(r *ranks) error) error {
	l, launched := mpi.Launcher()
	if !launched {
		return f(&ranks{Comm: local.Self()})
	}
	c, library, err := mpi.Init()
	if err != nil {
		if l.Rank != 0 && l.LocalRank == 0 { // rank 0's error is printed by main; machines may differ
			fmt.Fprintf(stderr, "spmmrun: rank %d: %s\n", l.Rank, oneLine(err))
		}
		return err
	}
	r := &ranks{Comm: c, launch: l, library: library}
	shareThreads(l)
	err = recovered(func() error { return f(r) })
	if err == nil || errors.As(err, new(agreed)) {
		return errors.Join(err, c.Close())
	}
	if errors.Is(err, context.Canceled) { // which main prints; the others are interrupted too
		return err
	}
	if crashed := (*crash)(nil); errors.As(err, &crashed) {
		fmt.Fprintf(stderr, "%s\n", crashed.stack)
	}
	fmt.Fprintf(stderr, "spmmrun: rank %d: %s\n", l.Rank, oneLine(err))
	c.Abort(exitCode(err))
	return err
}

// withGroup runs f as ranks that are goroutines, one for each of a list of devices.
func withGroup(ctx context.Context, list string, f func(ctx context.Context, r *ranks) error) error {
	if _, launched := mpi.Launcher(); launched {
		return fmt.Errorf("--backend %s is for one process: start spmmrun without mpirun or srun", list)
	}
	g, err := spmm.Open(ctx, list)
	if err != nil {
		return err
	}
	defer g.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	devices := g.Devices()
	var mu sync.Mutex
	var first error
	_ = local.Run(len(devices), func(c comm.Comm) error {
		l := mpi.Launch{By: "this process", Rank: c.Rank(), Size: c.Size(), LocalRank: c.Rank(), LocalSize: c.Size()}
		err := recovered(func() error {
			return f(ctx, &ranks{Comm: c, launch: l, library: "a goroutine for each device", device: devices[c.Rank()]})
		})
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			cancel() // others may wait for this rank's data
		}
		// The first error says what was wrong; others may only say that another rank has ended. Of what all agree on rank 0's
		// is printed.
		if err != nil && (first == nil || c.Rank() == 0 && errors.As(err, new(agreed))) {
			first = err
		}
		return err
	})
	return first
}

// agreed is an error that all ranks return, if not the same one.
type agreed struct{ error }

func (e agreed) Unwrap() error { return e.error }

// ending says that ranks have agreed on an error, which rank 0 prints: the signal by which a launcher ends those that
// end later than the first is no news.
var ending atomic.Bool

// agree tells all ranks whether one has an error: then all return one.
func (r *ranks) agree(err error) error {
	if err = comm.Agree(r, err, exitCode); err != nil && r.Size() > 1 {
		ending.Store(true)
		return agreed{err}
	}
	return err
}

// silent tells whether this process leaves it to another rank to print an error.
func silent(err error) bool {
	l, launched := mpi.Launcher()
	return launched && l.Rank != 0 && !errors.As(err, new(*crash))
}

// stopped says why a rank ends when it is interrupted.
func stopped(l mpi.Launch) string {
	return fmt.Sprintf("rank %d of %d is stopped: the job was interrupted, or another rank has died", l.Rank, l.Size)
}

// shareThreads gives each rank of a machine a part of its cores, unless the launcher has bound it to some.
func shareThreads(l mpi.Launch) {
	if l.LocalSize > 1 && os.Getenv("GOMAXPROCS") == "" && runtime.NumCPU() == online() {
		runtime.GOMAXPROCS(max(1, runtime.NumCPU()/l.LocalSize))
	}
}

// online returns the machine's cores, 0 if that is not known.
func online() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return 0
	}
	n := 0
	for _, part := range strings.Split(strings.TrimSpace(string(text)), ",") {
		first, last, ranged := strings.Cut(part, "-")
		lo, err := strconv.Atoi(first)
		hi := lo
		if ranged && err == nil {
			hi, err = strconv.Atoi(last)
		}
		if err != nil {
			return 0
		}
		n += hi - lo + 1
	}
	return n
}

// output makes rank 0's output; the other ranks write nothing.
func (r *ranks) output(create func() (*output, error)) (*output, error) {
	out, err := &output{}, error(nil)
	if r.Rank() == 0 {
		if out, err = create(); err != nil {
			err = fmt.Errorf("--out: %w", err)
		}
	}
	return out, r.agree(err)
}

// open opens the device that a name means, for a precision: of several of one kind on a machine, each of its ranks
// takes another.
func (r *ranks) open(ctx context.Context, name string, precision dtype.Type) (*spmm.Device, error) {
	if r.device != nil {
		return r.device, nil
	}
	dev, err := spmm.OpenFor(ctx, name, precision)
	if err != nil || r.launch.LocalRank == 0 || strings.Contains(name, ":") {
		return dev, err
	}
	var alike []spmm.Info
	all, _ := spmm.Devices(ctx)
	for _, i := range all {
		if o := dev.Info(); i.Backend == o.Backend && i.Kind == o.Kind && i.Name == o.Name {
			alike = append(alike, i)
		}
	}
	if len(alike) < 2 {
		return dev, nil
	}
	mine := alike[r.launch.LocalRank%len(alike)]
	if mine.Index == dev.Info().Index {
		return dev, nil
	}
	if err := dev.Close(); err != nil {
		return nil, err
	}
	return spmm.Open(ctx, fmt.Sprintf("%s:%d", mine.Backend, mine.Index))
}

// exchanges are the words that --exchange takes, the default first.
var exchanges = []string{"auto", "nccl", "host"}

const exchangeHelp = "on several ranks, how rows of B travel: between GPUs by NCCL, or through the host's memory; auto takes NCCL where it can"

// via returns how the ranks' devices exchange data: by NCCL where all are NVIDIA GPUs of their own and it can be
// opened, or through the host's memory. It is collective.
func (r *ranks) via(ctx context.Context, dev *spmm.Device, how string, p *progress) (comm.DeviceComm, error) {
	gpus := []int64{int64(toInt(dev.Info().Backend == "cuda"))}
	if err := r.AllReduce(gpus, comm.Sum); err != nil {
		return nil, err
	}
	if how == "host" || r.Size() == 1 || how == "auto" && gpus[0] < int64(r.Size()) {
		return comm.Staged(r.Comm), nil
	}
	p.step("opening NCCL", -1)
	x, err := nccl.New(ctx, r, dev.Backend())
	switch {
	case err == nil:
		return x, nil
	case how == "nccl":
		return nil, r.agree(fmt.Errorf("--exchange nccl: %w", err))
	}
	r.whyHost = err.Error()
	return comm.Staged(r.Comm), nil
}

// load reads or makes the ranks' rows of a matrix. Errors are agreed on.
func (r *ranks) load(ctx context.Context, name string, seed uint64, p *progress) (matrixRead, error) {
	if strings.HasPrefix(name, gen.Prefix) {
		p.step("making "+name, -1)
		l, err := r.generate(ctx, name, seed)
		return l, r.agree(err)
	}
	if l, done, err := r.loadParts(ctx, name, p); done || err != nil {
		return l, err
	}
	var l matrixRead
	var err error
	if r.Rank() == 0 {
		var a formats.Encoded
		if a, err = openMatrix(ctx, name, seed, dtype.F32, p); err == nil {
			if _, is := a.(*formats.Quantised); is {
				err = fmt.Errorf("%s is quantised, which is for one process", name)
			} else {
				l.a, l.typ = a.Sparse(), a.Type()
			}
		}
	}
	if err := r.agree(err); err != nil {
		return l, err
	}
	typ := []int64{int64(l.typ)}
	if err := r.AllReduce(typ, comm.Max); err != nil {
		return l, err
	}
	l.typ = dtype.Type(typ[0])
	return l, nil
}

// loadParts has the ranks read a Matrix Market file together, each a part of it, where that is possible: if it is plain
// and all can open it.
func (r *ranks) loadParts(ctx context.Context, name string, p *progress) (l matrixRead, done bool, err error) {
	if r.Size() == 1 {
		return l, false, nil
	}
	p.step("reading "+name, -1)
	var part *mtx.Part
	f, size, err := openPlain(name)
	if err == nil {
		defer f.Close()
		var lim formats.Limits
		if free := memory.Available(); free > 0 {
			lim.Bytes = formats.ReadingBytes(free / int64(max(1, r.launch.LocalSize)))
		}
		part, err = mtx.ReadPart(readerAt{ctx, f}, size, r.Rank(), r.Size(), mtx.Options{Name: name, Limits: lim})
	}
	// Whether all may, and see the same file.
	state := []int64{int64(toInt(f == nil || errors.Is(err, mtx.ErrWhole))), size, -size}
	if err := r.AllReduce(state, comm.Max); err != nil {
		return l, false, err
	}
	if state[0] != 0 || state[1] != -state[2] {
		return l, false, nil
	}
	if err := r.agree(err); err != nil {
		return l, true, err
	}
	if err := r.wholeFile(name, part); err != nil {
		return l, true, err
	}
	s, merged, err := dist.FromEntries(r, part.Entries)
	if err := r.agree(err); err != nil {
		return l, true, err
	}
	all := []int64{merged}
	if err := r.AllReduce(all, comm.Sum); err != nil {
		return l, true, err
	}
	if all[0] > 0 && r.Rank() == 0 {
		p.warn(mergedText(name, all[0]))
	}
	return matrixRead{a: s.A, first: s.First, shared: true, typ: s.A.Type()}, true, nil
}

// wholeFile refuses parts that do not make the file that its size line announces.
func (r *ranks) wholeFile(name string, part *mtx.Part) error {
	state := []int64{part.Listed, int64(toInt(part.Lower)), int64(toInt(part.Upper))}
	if err := r.AllReduce(state, comm.Sum); err != nil {
		return err
	}
	var err error
	switch {
	case state[0] != part.Declared:
		err = fmt.Errorf("%s: has %d entries, and its size line announces %d", name, state[0], part.Declared)
	case state[1] > 0 && state[2] > 0:
		err = fmt.Errorf("%s: a symmetric matrix with entries on both sides of the diagonal", name)
	}
	return r.agree(err)
}

// openPlain opens a regular file.
func openPlain(name string) (*os.File, int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, errors.Join(errors.New("no regular file"), err, f.Close())
	}
	return f, info.Size(), nil
}

// readerAt reads until the context is done.
type readerAt struct {
	ctx context.Context
	r   io.ReaderAt
}

func (r readerAt) ReadAt(p []byte, at int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.ReadAt(p, at)
}

// generate makes this rank's rows of a generated matrix.
func (r *ranks) generate(ctx context.Context, name string, seed uint64) (matrixRead, error) {
	s, err := gen.Parse(name, seed)
	if err != nil {
		return matrixRead{}, err
	}
	var lim formats.Limits
	if free := memory.Available(); free > 0 {
		lim.Bytes = free / int64(max(1, r.launch.LocalSize))
	}
	one, n := lim.WithDefaults(), int64(r.Size())
	if err := s.Fits(formats.Limits{NNZ: one.NNZ * n, Bytes: min(one.Bytes, 1<<62/n) * n}); err != nil {
		return matrixRead{}, err
	}
	lo, hi := dist.Even(s.Rows, r.Size()).Range(r.Rank())
	a, err := s.GenerateRows(ctx, lim, lo, hi)
	if err != nil {
		return matrixRead{}, err
	}
	return matrixRead{a: a, first: lo, shared: true, typ: a.Type()}, nil
}

// shareOf balances what was read, or its transpose, as elements of type T, for products by cols columns.
func shareOf[T formats.Value](ctx context.Context, r *ranks, dev *spmm.Device, l matrixRead, transpose bool,
	cols int) (dist.Share[T], error) {
	var a *formats.CSR[T]
	if l.a != nil {
		a = formats.Convert[T](l.a.Sparse())
	}
	s := dist.Share[T]{First: l.first, A: a}
	if !l.shared {
		var err error
		if s, err = dist.FromRoot(r, a); err != nil {
			return s, err
		}
	}
	var err error
	if transpose {
		s, err = dist.Transpose(r, s)
		if err := r.agree(err); err != nil {
			return s, err
		}
	}
	s, err = dist.Balance(ctx, r, s)
	if err := r.agree(err); err != nil {
		return s, err
	}
	if mixed, err := r.mixed(dev); err != nil || !mixed {
		return s, err
	}
	speed, err := r.speed(ctx, dev, s.A, cols)
	if err != nil {
		return s, err
	}
	s, err = dist.BalanceBySpeed(ctx, r, s, speed)
	return s, r.agree(err)
}

// mixed tells whether ranks have devices of different kinds. It is collective.
func (r *ranks) mixed(dev *spmm.Device) (bool, error) {
	i := dev.Info()
	h := fnv.New64a()
	fmt.Fprint(h, i.Backend, i.Kind, i.Name)
	kind := int64(h.Sum64() >> 2)
	kinds := []int64{kind, -kind}
	err := r.AllReduce(kinds, comm.Max)
	return kinds[0] != -kinds[1], err
}

// speed returns how many entries and rows this rank's device is predicted to multiply a second, of those that it has
// now; 1 on all ranks if some have none. Errors are agreed on.
func (r *ranks) speed(ctx context.Context, dev *spmm.Device, a formats.Sparse, cols int) (float64, error) {
	rows, _ := a.Dims()
	work := float64(a.NNZ()) + float64(rows)
	none := []int64{int64(toInt(work == 0))}
	if err := r.AllReduce(none, comm.Max); err != nil || none[0] != 0 {
		return 1, err
	}
	took, err := spmm.Predict(ctx, dev, a, spmm.Options{Format: "csr", Cols: cols})
	return work / max(1e-9, took.Seconds()), r.agree(err)
}

// fits refuses, on all ranks, products whose B, C and workspace exceed this rank's part of the host's
// memory or its device's: B and C, and whatever comes of them, take these bytes of both.
func (r *ranks) fits(name string, dev *spmm.Device, plan *dist.Plan, n int, onDevice, onHost float64) error {
	device, host := plan.Memory(n)
	onDevice, onHost = onDevice+float64(device), onHost+float64(host)
	if dev.Info().Backend == "cpu" {
		onDevice, onHost = 0, onHost+onDevice
	}
	refuse := func(bytes, have float64, where string) error {
		if have > 0 && bytes > have {
			return fmt.Errorf("%s: %d columns take %s of %s on rank %d, and %s are available to it: use fewer columns or more ranks",
				name, n, byteSize(int64(bytes)), where, r.Rank(), byteSize(int64(have)))
		}
		return nil
	}
	err := refuse(onHost, float64(memory.Available())/float64(max(1, r.launch.LocalSize)), "memory")
	if err == nil && onDevice > 0 {
		err = refuse(onDevice+float64(plan.Info().Stats.StoredBytes), float64(dev.Info().Memory),
			fmt.Sprintf("the memory of %s:%d", dev.Info().Backend, dev.Info().Index))
	}
	return r.agree(err)
}

// joined returns what all ranks give, in order, on rank 0; nil on the others.
func (r *ranks) joined(mine []byte) ([][]byte, error) {
	sizes := make([]int64, r.Size())
	sizes[r.Rank()] = int64(len(mine))
	if err := r.AllReduce(sizes, comm.Sum); err != nil {
		return nil, err
	}
	counts := make([]int, len(sizes))
	for i, n := range sizes {
		counts[i] = int(n)
	}
	parts := comm.Follow(counts...)
	all := make([]byte, comm.End(parts))
	if err := r.AllGatherV(1, mine, all, parts); err != nil || r.Rank() != 0 {
		return nil, err
	}
	var out [][]byte
	for _, p := range parts {
		out = append(out, all[p.Start:p.Start+p.Count])
	}
	return out, nil
}
