// Copies between the host and a device: of page-locked and of ordinary memory, and the driver's own copies.

package benchmark

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/benchmark/plain"
)

// copyCols is the width of the matrices that are copied, in elements of 4 bytes. Rows of one less have padding.
const copyCols = 1024

// copySizes are the bytes of copies, up to most.
func copySizes(most int64) []int64 {
	var all []int64
	for bytes := int64(1 << 16); bytes <= most; bytes <<= 2 {
		all = append(all, bytes)
	}
	return all
}

// Copies measures uploads to each device and downloads, of 64 KiB to Task.Most bytes: of page-locked memory, of lines
// with padding in such, of ordinary memory, and on CUDA by cuMemcpy of page-locked memory (plain). Of several devices
// it measures the link, by copies from the first to the last.
func Copies(ctx context.Context, t *Task) (*Report, error) {
	sizes := copySizes(t.Most)
	if len(sizes) == 0 {
		return nil, fmt.Errorf("copies of at most %d bytes: the smallest has 65536", t.Most)
	}
	return t.each(ctx, len(sizes), func(at *place, step int) ([]*contest, error) {
		c := &copies{dev: at.dev, at: at.name, bytes: sizes[step]}
		enter := c.enter
		if at.several {
			enter = func() error { return c.link(ctx, len(at.devices)-1) }
		}
		err := enter()
		return c.all, err
	})
}

// copies are those who copy one size.
type copies struct {
	dev   *spmm.Device
	at    string
	bytes int64
	all   []*contest
}

func (c *copies) enter() error {
	in, out, free, err := plain.Copies(c.at, int(c.bytes))
	if err != nil {
		return err
	}
	if in != nil {
		up, down := func(context.Context) error { return in() }, func(context.Context) error { return out() }
		c.add("plain", up, down, func() error { free(); return nil })
	}
	rows := int(c.bytes / 4 / copyCols)
	for _, x := range []struct {
		name string
		cols int
	}{{"page-locked", copyCols}, {"page-locked, padded", copyCols - 1}} {
		p, err := spmm.NewPinned[float32](c.dev, rows, x.cols, false)
		if err != nil {
			return err
		}
		if err := c.tensor(x.name, &p.Dense, p.Close); err != nil {
			return err
		}
	}
	return c.tensor("ordinary", formats.NewDense[float32](rows, copyCols), func() error { return nil })
}

// link adds copies from the first of several devices to the last.
func (c *copies) link(ctx context.Context, last int) error {
	rows := int(c.bytes / 4 / copyCols)
	none := &formats.CSR[float32]{Rows: rows, Cols: rows, RowPtr: make([]int64, rows+1)}
	plan, err := spmm.Prepare(ctx, c.dev, none, spmm.Options{Format: "csr", Cols: copyCols})
	if err != nil {
		return err
	}
	e := &timed{shut: []func() error{plan.Close}}
	c.all = append(c.all, &contest{entrant: e, Result: Result{
		Case: Case{
			Matrix: size(c.bytes), N: 1, Precision: "f32", Backend: c.at, Mode: Fast,
			Format: fmt.Sprintf("device 0 to %d", last),
		},
		Chosen: "link", Bytes: c.bytes,
	}})
	var ends [2]*spmm.Tensor[float32]
	for i, at := range []int{0, last} {
		if ends[i], err = spmm.NewTensorAt[float32](plan, rows, copyCols, spmm.On(at)); err != nil {
			return err
		}
		e.shut = append(e.shut, ends[i].Close)
	}
	if err := ends[0].Upload(ctx, formats.NewDense[float32](rows, copyCols)); err != nil {
		return err
	}
	copied := byHost(func(ctx context.Context) error {
		_, err := ends[1].Copy(ctx, ends[0])
		return err
	})
	e.run, e.clock = copied.run, copied.clock
	return nil
}

// tensor adds the copies of a matrix to a tensor and back.
func (c *copies) tensor(name string, d *formats.Dense[float32], free func() error) error {
	x, err := spmm.NewTensor[float32](c.dev, d.Rows, d.Cols, false)
	if err != nil {
		free()
		return err
	}
	for i := range d.Data {
		d.Data[i] = float32(i % 1000)
	}
	up := func(ctx context.Context) error { return x.Upload(ctx, d) }
	down := func(ctx context.Context) error { return x.Download(ctx, d) }
	c.add(name, up, down, free, x.Close)
	return nil
}

// add adds copies both ways; what they use is freed when the first is closed, the last in the list first.
func (c *copies) add(name string, up, down func(ctx context.Context) error, free ...func() error) {
	for _, x := range []struct {
		way string
		run func(ctx context.Context) error
	}{{"up", up}, {"down", down}} {
		e := byHost(x.run)
		e.shut, free = free, nil
		c.all = append(c.all, &contest{entrant: e, Result: Result{
			Case: Case{
				Matrix: size(c.bytes) + " " + x.way, N: 1, Precision: "f32", Backend: c.at, Format: name,
				Mode: Fast,
			},
			Chosen: name, Bytes: c.bytes,
		}})
	}
}

// size is a number of bytes in words.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%d GiB", bytes>>30)
	case bytes >= 1<<20:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}
