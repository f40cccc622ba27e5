// The same on processes: the test starts itself as ranks, with mpirun, and they do all of these products.

//go:build cgo && linux

package dist_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/mpi"
	"github.com/spmmrun/spmm/comm/mpi/mpitest"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// asRank is set where the test is a rank.
const asRank = "SPMM_TEST_RANK"

func init() {
	if os.Getenv(asRank) == "" {
		return
	}
	run = func(*testing.M) int {
		if err := rank(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
}

// TestMPI compares digests of C on 2, 3 and 4 ranks with those of one process.
func TestMPI(t *testing.T) {
	self := must(os.Executable())
	dev := openCPU(t)
	var want []string
	for _, name := range productNames() {
		q := products[name]
		a, b, c := q.operands()
		want = append(want, name+" "+digestOf(alone(t, dev, q.o, a, 0.5, b, 0.25, c)))
	}
	for _, l := range mpitest.Launchers(t) {
		for _, n := range []int{2, 3, 4} {
			if l.Spins && n > 2 {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			cmd := l.Command(ctx, n, self)
			cmd.Env = append(cmd.Env, asRank+"=1")
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			cancel()
			if got := strings.Split(strings.TrimSpace(stdout.String()), "\n"); err != nil ||
				strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s -n %d: %v\n%s\n%s\nwant\n%s", l.Name, n, err, &stdout, &stderr, strings.Join(want, "\n"))
			}
		}
	}
}

// product is a matrix and how it is multiplied.
type product struct {
	spec string
	o    spmm.Options
}

var products = map[string]product{
	"rmat fast":         {"gen:rmat,scale=11", modes["fast"]},
	"rmat reproducible": {"gen:rmat,scale=11", modes["reproducible"]},
	"rmat auto":         {"gen:rmat,scale=9", modes["reproducible auto"]},
	"stencil fast":      {"gen:stencil,side=14", modes["fast"]},
	"stencil exact":     {"gen:stencil,side=14", modes["reproducible"]},
	"three rows":        {"gen:uniform,rows=3,cols=500,density=0.1", modes["fast"]},
	"one row":           {"gen:uniform,rows=1,cols=500,density=0.1", modes["reproducible"]},
	"empty rows":        {"gen:onedense,rows=600,row=599,density=0.001,empty=0.9", modes["fast"]},
}

func productNames() []string {
	var names []string
	for name := range products {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (q product) operands() (a *formats.CSR[float32], b, c *formats.Dense[float32]) {
	const n = 6
	a = must(gen.CSR(q.spec))
	return a, outliers(a.Cols, n, true), gen.Dense(a.Rows, n, 4, gen.Values{})
}

func digestOf(c *formats.Dense[float32]) string {
	h := sha256.New()
	for i := range c.Rows {
		fmt.Fprintf(h, "%x", c.Line(i))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// rank does all products as one rank; rank 0 prints the digests.
func rank() error {
	c, _, err := mpi.Init()
	if err != nil {
		return err
	}
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		return err
	}
	defer dev.Close()
	for _, name := range productNames() {
		if err := onRank(c, dev, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return c.Close()
}

func onRank(c comm.Comm, dev *spmm.Device, name string) error {
	q := products[name]
	s, err := gen.Parse(q.spec, 0)
	if err != nil {
		return err
	}
	_, b, c0 := q.operands()
	lo, hi := dist.Even(s.Rows, c.Size()).Range(c.Rank())
	a, err := s.GenerateRows(ctx, formats.Limits{}, lo, hi)
	if err != nil {
		return err
	}
	share, err := dist.Balance(ctx, c, dist.Share[float32]{First: lo, A: a})
	if err != nil {
		return err
	}
	p, err := dist.Prepare(ctx, c, dev, share, dist.Options{Multiply: q.o})
	if err != nil {
		return err
	}
	defer p.Close()
	lo, hi = p.Held().Range(c.Rank())
	first, last := p.Shares().Range(c.Rank())
	mine := rowsOf(c0, first, last)
	if _, err := dist.Multiply(ctx, p, 0.5, rowsOf(b, lo, hi), 0.25, mine); err != nil {
		return err
	}
	all := &formats.Dense[float32]{Cols: c0.Cols, LD: c0.Cols}
	err = dist.Collect(c, p.Shares(), mine, func(rows *formats.Dense[float32]) error {
		all.Rows += rows.Rows
		all.Data = append(all.Data, rows.Data[:rows.Rows*rows.Cols]...)
		return nil
	})
	if c.Rank() == 0 && err == nil {
		fmt.Println(name, digestOf(all))
	}
	return err
}
