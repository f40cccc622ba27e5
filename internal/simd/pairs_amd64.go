// The choice of assembly for pairs of rows on amd64.

package simd

import "unsafe"

//go:noescape
func pairsF64AVX2(job *rowsJob)

//go:noescape
func pairsF64AVX512(job *rowsJob)

func pairsF64(r *Rows[float64, float64]) {
	if level == goOnly {
		goPairsF64(r)
		return
	}
	lanes, do := 4, pairsF64AVX2
	if level == avx512 {
		lanes, do = 8, pairsF64AVX512
	}
	job := newJob(r, lanes)
	job.vals = unsafe.Pointer(unsafe.SliceData(r.Vals[2*r.Starts[0]:]))
	do(&job)
}
