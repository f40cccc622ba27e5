// The choice of assembly for rows of integers on amd64.

package simd

import "unsafe"

//go:noescape
func rowsInt16AVX2(job *rowsJob)

//go:noescape
func rowsInt32AVX2(job *rowsJob)

//go:noescape
func pairsInt32AVX2(job *rowsJob)

//go:noescape
func rowsInt16AVX512(job *rowsJob)

//go:noescape
func rowsInt32AVX512(job *rowsJob)

//go:noescape
func pairsInt32AVX512(job *rowsJob)

// In wide tiles, with AVX-512; the columns that fill none are left in the job.

//go:noescape
func rowsInt32Wide(job *rowsJob)

//go:noescape
func pairsInt32Wide(job *rowsJob)

// interleaved64 has the places of columns in two registers of 8 lanes: the first has the even columns.
//
//lint:ignore U1000 wide_amd64.s reads it.
var interleaved64 = [16]int64{0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15}

// newIntJob is the job for all of r's columns in vectors of `lanes` lanes.
func newIntJob[T int16 | int32](r *IntRows[T], lanes int) rowsJob {
	var t T
	first, rows := r.Starts[0], len(r.Starts)-1
	job := rowsJob{
		starts: &r.Starts[0], rows: rows,
		cols: unsafe.SliceData(r.Cols[first:]), vals: unsafe.Pointer(unsafe.SliceData(r.Vals[first:])),
		b: unsafe.Pointer(unsafe.SliceData(r.B)), ldb: uintptr(r.LDB) * unsafe.Sizeof(t),
		c: unsafe.Pointer(&r.C[0]), ldc: 8 * uintptr(r.LDC),
		vectors: r.N / lanes,
	}
	if r.Upper != nil {
		job.upper = unsafe.Pointer(unsafe.SliceData(r.Upper[first:]))
	}
	if int(r.Starts[rows])+r.Ahead+8 <= len(r.Cols) { // columns that are looked at ahead exist
		job.ahead = 4 * uintptr(r.Ahead)
	}
	return job
}

func rowsInt16(r *IntRows[int16]) {
	switch level {
	case goOnly:
		oneIntRow(r, goIntRow[int16])
	case avx2:
		job := newIntJob(r, 4)
		rowsInt16AVX2(&job)
	default:
		job := newIntJob(r, 8)
		rowsInt16AVX512(&job)
	}
}

func rowsInt32(r *IntRows[int32]) {
	if level == goOnly {
		oneIntRow(r, goIntRow[int32])
		return
	}
	if level == avx2 {
		job := newIntJob(r, 4)
		if r.Upper == nil {
			rowsInt32AVX2(&job)
		} else {
			pairsInt32AVX2(&job)
		}
		return
	}
	job := newIntJob(r, 8)
	if r.Upper == nil {
		rowsInt32Wide(&job)
		rowsInt32AVX512(&job)
	} else {
		pairsInt32Wide(&job)
		pairsInt32AVX512(&job)
	}
}
