// How much memory a job will take on this machine, known before it takes any.

package main

import (
	"fmt"
	"strings"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/memory"
)

// need lists the memory that a job takes in addition to A as it was read.
type need struct {
	rows, inner, cols, nnz float64 // of A, B and C
	size                   float64 // bytes of an element of A and B on the device: those of f64 have C in f64
	inMemory               bool    // the device's memory is the machine's
	bRead                  bool    // B is there already
	job                    *job
}

// newNeed describes the job for A of rows×inner and B of inner×cols.
func newNeed(j *job, dev spmm.Info, rows, inner, cols int, nnz int64, size int) need {
	return need{
		rows: float64(rows), inner: float64(inner), cols: float64(cols), nnz: float64(nnz), size: float64(size),
		inMemory: dev.Kind == "cpu" || dev.Kind == "integrated", bRead: j.bFile != "", job: j,
	}
}

// part is memory for one purpose.
type part struct {
	what  string
	bytes float64
}

// parts lists what is needed at the same time. Encodings are counted as csr is: that of another format may be larger,
// but not by so much that it would have been chosen.
func (n need) parts() []part {
	b, c := n.inner*n.cols, n.rows*n.cols
	copies := func(here bool) float64 { // of what is on the host and on the device
		return float64(toInt(here) + toInt(n.inMemory))
	}
	held := copies(true) // of A, which each of several devices may have
	if n.inMemory {
		held += float64(max(1, n.job.devices) - 1)
	}
	if n.job.memory > 0 {
		held++ // panels that go to the device for each product
	}
	converted, narrow := 0.0, n.size < 4
	sum, drawn := max(4, n.size), 0.0 // bytes of an element of C
	if n.size > 4 {
		drawn = 4 * b // a random B, before it is converted
	}
	if narrow { // A and B as they were read, and rounded
		converted = 8*n.rows + (4+n.size)*n.nnz + n.size*b
	}
	ps := []part{
		{"A's encoding", converted + (4*n.rows+(4+n.size)*n.nnz)*held},
		{n.shape("B", n.inner), (sum*b+drawn)*float64(toInt(!n.bRead)) + n.size*b*copies(false)},
		{n.shape("C", n.rows), sum * c * (copies(true) + float64(toInt(n.job.beta != 0)))},
	}
	verification := 0.0
	switch j := n.job; {
	case j.verify == "none":
	case j.mode == reproducible:
		verification = 8 * n.inner * min(n.cols, 128) // a block of columns as integers
		if j.verify == "full" {
			verification += 8*n.nnz + 4*c
		}
		fallthrough
	default:
		if narrow {
			verification += 8*n.rows + 8*n.nnz + 4*b
		}
	}
	return append(ps, part{"verification", verification})
}

func (n need) shape(name string, rows float64) string {
	return fmt.Sprintf("%s (%.0f×%.0f)", name, rows, n.cols)
}

// generatedFits refuses, before it is made, a generated A whose B and C alone take more than there is.
func (j *job) generatedFits(dev spmm.Info) error {
	if !strings.HasPrefix(j.matrix, gen.Prefix) || j.bFile != "" {
		return nil // the sizes are not known yet
	}
	s, err := gen.Parse(j.matrix, j.seed)
	if err != nil {
		return err
	}
	rows, cols := s.Rows, s.Cols
	if j.transpose {
		rows, cols = cols, rows
	}
	return newNeed(j, dev, rows, cols, j.cols, 0, max(4, typeOf(j.precision).Size())).check()
}

// check refuses a job that takes more than there is.
func (n need) check() error {
	have, total := float64(memory.Available()), 0.0
	var words []string
	for _, p := range n.parts() {
		if total += p.bytes; p.bytes >= 1 {
			words = append(words, p.what+" "+byteSize(int64(min(p.bytes, 1<<62))))
		}
	}
	if have == 0 || total < have {
		return nil
	}
	use := "fewer columns (-n)"
	if n.bRead {
		use = "a B of fewer columns"
	}
	if verification := n.parts()[3].bytes; n.job.verify != "none" && total-verification < have {
		use = "--verify none"
		if n.job.verify == "full" && n.job.mode == reproducible {
			use = "--verify sample or none"
		}
		use += ", or fewer columns (-n)"
	}
	return fmt.Errorf("%s: this takes %s of memory (%s), and %s are available: use %s",
		n.job.matrix, byteSize(int64(min(total, 1<<62))), strings.Join(words, ", "), byteSize(int64(have)), use)
}
