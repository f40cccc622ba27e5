// Reproducible mode's sums before they are rounded: what several devices, or ranks, that have some of the columns each add up.

package plan

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/quantise"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Sums is entries of rows on a device, at a precision.
type Sums struct {
	dev     *device.Device
	variant *spec.Variant
	part
	pieces      []int32            // the row of each
	fixed, work shared             // B in fixed point; sums of pieces
	none        backend.Buffer     // for the kernel's C, which it does not write
	host        backend.HostMemory // what is read of the sums at a time; nil: none was so far
}

// NewSums brings entries to the device, given the ranges of the whole rows that they are of.
func NewSums(ctx context.Context, d *device.Device, a formats.Sparse, rows []rfx.Range, p rfx.P) (*Sums, error) {
	v, err := kernel.Variant(d.Caps(), p, kernel.Rows)
	if err != nil {
		return nil, err
	}
	s := &Sums{dev: d, variant: v, fixed: shared{what: "B in fixed point"}, work: shared{what: "sums of rows"}}
	var enc *spec.Packed
	switch a := a.(type) {
	case *formats.CSR[half.F16]:
		enc, s.pieces, err = kernel.PackSums(a, rows, v)
	case *formats.CSR[half.BF16]:
		enc, s.pieces, err = kernel.PackSums(a, rows, v)
	case *formats.CSR[float32]:
		enc, s.pieces, err = kernel.PackSums(a, rows, v)
	default:
		err = fmt.Errorf("sums of a matrix of %v: %w", a.Type(), backend.ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	if s.part, err = uploadPart(ctx, d, enc); err == nil {
		s.none, err = d.NewBuffer(4, "an empty C")
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Describe returns what is on the device.
func (s *Sums) Describe() Info {
	e := s.enc
	return Info{Rows: e.Rows, Cols: e.Cols, NNZ: e.NNZ, Format: kernel.Rows.Format(), Variant: s.variant.Name, Precision: e.Format.(kernel.Split).Type, Stats: e.Stats}
}

// Multiply writes the sums of the entries' products with b, a row-major tensor in one block on the device, b.Cols of them for each row. B's
// columns are quantised by the ranges that b has. What is not finite counts as 0.
func (s *Sums) Multiply(ctx context.Context, b *tensor.Tensor, sums []rfx.Sum) error {
	if b == nil || b.Device() != s.dev || b.ColMajor || b.RowBlocks() > 1 || b.ColBlocks() > 1 || b.BlockLayout(0, 0).Loose || b.Type == dtype.F64 {
		return fmt.Errorf("sums of products: want a row-major B of f16, bf16 or f32 in one block on %v: %w", s.dev.Info(), backend.ErrUnsupported)
	}
	if b.Rows != s.enc.Cols || len(sums) != s.enc.Rows*b.Cols {
		return fmt.Errorf("%d sums of a matrix of %d×%d times one of %d×%d", len(sums), s.enc.Rows, s.enc.Cols, b.Rows, b.Cols)
	}
	clear(sums)
	if len(s.pieces) == 0 || b.Cols == 0 {
		return nil
	}
	if err := b.Use(); err != nil {
		return err
	}
	defer b.Release()
	q := kernel.Layout(s.variant, b.Rows, b.Cols)
	if err := s.quantise(ctx, b, q); err != nil {
		return err
	}
	const most = 64 << 20 // bytes of sums at a time
	each := int64(q.LD) * 16
	step := int(max(1, min(int64(len(s.pieces)), min(most, s.dev.Limit())/each)))
	host, err := s.reserve(int64(step) * each)
	if err != nil {
		return err
	}
	for at := 0; at < len(s.pieces); at += step {
		n := min(step, len(s.pieces)-at)
		if err := s.pass(ctx, q, at, n, host[:2*n*q.LD]); err != nil {
			return err
		}
		s.add(sums, host, q, at, n)
	}
	return nil
}

// reserve returns memory of the host for sums, page-locked if the device has such.
func (s *Sums) reserve(bytes int64) ([]uint64, error) {
	if s.host == nil || int64(len(s.host.Bytes())) < bytes {
		if s.host != nil {
			if err := s.host.Close(); err != nil {
				return nil, err
			}
		}
		s.host = s.dev.HostMemory(bytes)
	}
	return backend.View[uint64](s.host.Bytes()), nil
}

// quantise brings b to fixed point.
func (s *Sums) quantise(ctx context.Context, b *tensor.Tensor, q quantise.Layout) error {
	v, err := quantise.Variant(s.dev.Caps())
	if err != nil {
		return err
	}
	l, err := quantise.Launch(v, q, b.Type, b.BlockLayout(0, 0).LD)
	if err != nil {
		return err
	}
	if err := s.fixed.make(s.dev, q.Bytes()); err != nil {
		return err
	}
	launches, err := launchesOf(s.dev, quantise.Program, []backend.Buffer{b.Block(0, 0), s.fixed.buf}, l.Passes)
	if err == nil {
		_, err = s.dev.Run(ctx, launches...)
	}
	return err
}

// pass reads the sums of n pieces from number at on.
func (s *Sums) pass(ctx context.Context, q quantise.Layout, at, n int, host []uint64) error {
	l, err := kernel.SumsOf(s.variant, s.enc, q, at, n, s.dev.Caps())
	if err != nil {
		return err
	}
	if err := s.work.make(s.dev, l.Workspace); err != nil {
		return err
	}
	rows, ints := s.bufs[0], s.bufs[1]
	launches, err := launchesOf(s.dev, kernel.Format.Program, []backend.Buffer{rows, ints, ints, ints, s.fixed.buf, ints, s.none, s.work.buf}, l.Passes)
	if err == nil {
		_, err = s.dev.Run(ctx, launches...)
	}
	if err != nil {
		return err
	}
	return s.work.buf.Read(ctx, 0, backend.Bytes(host))
}

// add adds the sums of n pieces from number at on to those of their rows, each goroutine some rows.
func (s *Sums) add(sums []rfx.Sum, host []uint64, q quantise.Layout, at, n int) {
	var wg sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), n, 1+n*q.N>>14) // each has a piece: those that begin before the first would be taken for more of its row
	for w := range workers {
		lo, hi := w*n/workers, (w+1)*n/workers
		for lo > 0 && lo < n && s.pieces[at+lo] == s.pieces[at+lo-1] { // pieces of a row are one goroutine's
			lo++
		}
		for hi < n && s.pieces[at+hi] == s.pieces[at+hi-1] {
			hi++
		}
		wg.Go(func() {
			for i := lo; i < hi; i++ {
				of, from := sums[int(s.pieces[at+i])*q.N:][:q.N], host[2*i*q.LD:]
				for j := range of {
					of[j] = rfx.Sum(rfx.Int128(of[j]).Add(rfx.Int128{Hi: int64(from[2*j+1]), Lo: from[2*j]}))
				}
			}
		})
	}
	wg.Wait()
}

// make makes the buffer of a use by itself at least so large.
func (s *shared) make(d *device.Device, bytes int64) (err error) {
	if s.size >= bytes {
		return nil
	}
	if s.buf != nil {
		s.buf.Close()
		s.buf, s.size = nil, 0
	}
	if s.buf, err = d.NewBuffer(bytes, s.what); err != nil {
		s.buf = nil
		return err
	}
	s.size = bytes
	return nil
}

// Close frees what is on the device.
func (s *Sums) Close() error {
	var errs []error
	for _, b := range append(s.bufs, s.none, s.fixed.buf, s.work.buf) {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	if s.host != nil {
		errs = append(errs, s.host.Close())
	}
	return errors.Join(errs...)
}
