// The choice of assembly for consecutive rows on amd64.

package simd

import (
	"unsafe"

	"github.com/spmmrun/spmm/formats/half"
)

// rowsJob is the assembly's task: vectors of columns, the last of them perhaps short, for rows ≥ 1. Strides are in
// bytes.
type rowsJob struct {
	starts  *uint32
	cols    *uint32 // at the first row's first entry, as vals is
	vals    unsafe.Pointer
	upper   unsafe.Pointer // the entries' second values, of pairs
	b, c    unsafe.Pointer
	ldb     uintptr
	ldc     uintptr
	rows    int
	vectors int
	missing int     // lanes that the last vector lacks
	ahead   uintptr // bytes of cols
	stream  int     // not 0: write past the caches
	later   uintptr // bytes of c to the row that is prefetched; 0: none
	uneven  int     // not 0: whether a row's number of entries is even cannot be predicted from the last row's
	alpha   [8]byte
	// What the assembly sets where a row has several tiles: how many rows follow, b and c at the first column, and all
	// vectors.
	after     int
	left, row unsafe.Pointer
	across    int
}

// laneMasks has, from lane i on, a mask for a vector that lacks i of its lanes, in 32-bit lanes of 8 and in 64-bit
// lanes of 4.
//
//lint:ignore U1000 rows_amd64.s reads it.
var laneMasks = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

// interleaved has the places of columns in two registers of 16 lanes: the first has the even columns.
//
//lint:ignore U1000 rows_amd64.s reads it.
var interleaved = [32]int32{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
	8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31}

// noEntry is a row of b for four registers, of zeros, and -0 as an element of any size that ends where it ends.
//
//lint:ignore U1000 rows_amd64.s reads it.
var noEntry = struct {
	b [256]byte
	v uint64
}{v: 1 << 63}

//go:noescape
func rowsF32AVX2(job *rowsJob)

//go:noescape
func rowsF16AVX2(job *rowsJob)

//go:noescape
func rowsBF16AVX2(job *rowsJob)

//go:noescape
func rowsF64AVX2(job *rowsJob)

//go:noescape
func rowsF32AVX512(job *rowsJob)

//go:noescape
func rowsF16AVX512(job *rowsJob)

//go:noescape
func rowsBF16AVX512(job *rowsJob)

//go:noescape
func rowsF64AVX512(job *rowsJob)

const (
	line      = 64 // bytes of the caches
	laterRows = 8  // how many rows of C ahead lines are prefetched, so that stores need not wait for them
)

// newJob is the job for all of r's columns in vectors of `lanes` lanes.
func newJob[T, S any](r *Rows[T, S], lanes int) rowsJob {
	var t T
	var s S
	first, rows := r.Starts[0], len(r.Starts)-1
	job := rowsJob{
		starts: &r.Starts[0], rows: rows,
		cols: unsafe.SliceData(r.Cols[first:]), vals: unsafe.Pointer(unsafe.SliceData(r.Vals[first:])),
		b: unsafe.Pointer(unsafe.SliceData(r.B)), ldb: uintptr(r.LDB) * unsafe.Sizeof(t),
		c: unsafe.Pointer(&r.C[0]), ldc: uintptr(r.LDC) * unsafe.Sizeof(s),
		vectors: (r.N + lanes - 1) / lanes,
	}
	job.missing = job.vectors*lanes - r.N
	*(*S)(unsafe.Pointer(&job.alpha)) = r.Alpha
	if uneven(r.Starts) {
		job.uneven = 1
	}
	if int(r.Starts[rows])+r.Ahead+8 <= len(r.Cols) { // columns that are looked at ahead exist
		job.ahead = uintptr(r.Ahead) * unsafe.Sizeof(r.Cols[0])
	}
	if whole := uintptr(job.c)%line == 0 && job.ldc%line == 0 && uintptr(r.N)*unsafe.Sizeof(s)%line == 0; r.Stream &&
		whole {
		job.stream = 1
	} else {
		job.later = laterRows * job.ldc
	}
	return job
}

// uneven reports whether, in the first rows, the number of entries often changes from even to odd or back.
func uneven(starts []uint32) bool {
	const rows, often = 32, 4 // one row of so many
	changes := uint32(0)
	starts = starts[:min(rows, len(starts))]
	for i := 2; i < len(starts); i++ {
		changes += (starts[i] - starts[i-2]) & 1
	}
	return int(changes)*often > len(starts)
}

// split takes the last vector out of a job of AVX-512 for float32 where b is padded for half of it alone, and returns
// that half as a job of AVX2, which has the same order of sums and is faster than a vector with a mask.
func split[T any](job *rowsJob, r *Rows[T, float32]) (last rowsJob, ok bool) {
	if job.missing < 8 {
		return last, false
	}
	job.vectors--
	last = *job
	done := uintptr(16 * job.vectors)
	var t T
	if len(r.B) > 0 { // else nothing is read of it, and an address past it would be no pointer
		last.b = unsafe.Add(last.b, done*unsafe.Sizeof(t))
	}
	last.c = unsafe.Add(last.c, 4*done)
	last.vectors, last.missing, job.missing = 1, job.missing-8, 0
	return last, true
}

func rowsF32(r *Rows[float32, float32]) {
	switch level {
	case goOnly:
		oneByOne(r, RowF32)
	case avx2:
		job := newJob(r, 8)
		rowsF32AVX2(&job)
	default:
		job := newJob(r, 16)
		if last, ok := split(&job, r); ok {
			rowsF32AVX2(&last)
		}
		rowsF32AVX512(&job)
	}
}

func rowsF16(r *Rows[half.F16, float32]) {
	switch level {
	case goOnly:
		oneByOne(r, RowF16)
	case avx2:
		job := newJob(r, 8)
		rowsF16AVX2(&job)
	default:
		job := newJob(r, 16)
		if last, ok := split(&job, r); ok {
			rowsF16AVX2(&last)
		}
		rowsF16AVX512(&job)
	}
}

func rowsBF16(r *Rows[half.BF16, float32]) {
	switch level {
	case goOnly:
		oneByOne(r, RowBF16)
	case avx2:
		job := newJob(r, 8)
		rowsBF16AVX2(&job)
	default:
		job := newJob(r, 16)
		if last, ok := split(&job, r); ok {
			rowsBF16AVX2(&last)
		}
		rowsBF16AVX512(&job)
	}
}

func rowsF64(r *Rows[float64, float64]) {
	switch level {
	case goOnly:
		oneByOne(r, RowF64)
	case avx2:
		job := newJob(r, 4)
		rowsF64AVX2(&job)
	default:
		job := newJob(r, 8)
		rowsF64AVX512(&job)
	}
}
