// Package conformance shows that kernels give the right answer, and the same one on every device.
//
// Run multiplies some hundreds of problems with every variant of every kernel that a device can run, and
// returns a Manifest: what was run, on what, and with which outcome. Manifests of many devices are
// checked in below manifests/; Verifier recomputes what they claim on the CPU alone.
//
// # What right means
//
// Matrix units differ in the order, the width and the rounding of their sums. So there are classes of
// problems, each with what can be demanded of it:
//
//   - T1+ and T1± have exact answers, and a digest must be that of the exact answer, bit for bit, on
//     every device. Their numbers lie on a grid: each product (and beta/alpha times each element
//     of C) is a multiple of some 2^g, no smaller than 2^-126; Σ|a·b|+|c| is at most 2^(g+24); no
//     operand is subnormal; and the exponents of two operands of a product add up to at most g+23.
//     Then each partial sum, in any order, is a number of f32, and a unit that cuts addends
//     to 23 bits below the largest exponent cuts nothing off. In T1+ all products of an output have
//     one sign; in T1± they do not, which some devices' units get wrong, for which they may
//     carry a published waiver. A dropped entry, a wrong index or a lost bit always shows.
//   - nonfinite is T1± with infinities and NaN in A, B and C. An output is NaN if a product is NaN or
//     infinities of both signs meet; else infinite if a product is; else exact. What A does not
//     store does not touch B; zeros that A stores do.
//   - subnormal has subnormal operands. The exact answer is right, and so is that with those operands
//     taken for zero.
//   - T2 has numbers like those of real data. |c − c*| ≤ γ(1+γ)·Σ|a||b| with γ = 3·(entries+1)·2⁻²³, see
//     package oracle. That is a weak demand: a dropped entry of thousands may pass.
//
// Before outputs are hashed, -0 becomes +0 and every NaN the same one. A C of 16 bits is rounded once, to
// nearest even, from the exact sum.
//
// In all classes each multiplication runs twice and must give the same bits. Padding between rows, memory
// that is undefined, and C where beta is 0 hold NaN; padding of C, arguments that are only read, sentinel
// bytes behind each buffer and canary buffers between them must be as before.
//
// # How to read a case's name
//
//	cvse/v8/f16/T1±/m29k60n33/vec8/beta-1/ldpad
//
// is format cvse with panels of 8 rows, computed in f16, class T1±, A of 29×60 and B of 60×33, A's
// entries in whole vectors of 8 (see pattern.go), beta -1, and leading dimensions larger than
// needed. A kind of numbers may stand after the pattern (see recipe.go). Further words at the end:
//
//	host, tensor   through package spmm, with B and C in the host's memory or on the device;
//	               without either the kernel is launched by its table alone
//	bcol, ccol     B, C column-major
//	a:f32, c:f16   A (b: B, c: C) stored in another type than usual
//	seed2          other numbers
//
// A manifest has one line for each case and variant that it ran with. A case that no variant of the
// device is for is unsupported, which is not a pass.
//
// # How to add cases
//
// A new format or variant needs nothing: cases are made from the kernels' tables. A new problem is a
// line in one of the lists of shapes in cases.go; a new pattern is an entry of patterns. Kinds of
// numbers are in exact.go and general.go; tests hold those of T1 against the conditions above. Raise
// Suite when a case that stays has other inputs, or more is demanded of it.
//
// Each fault that a kernel can have should be among the mutations of mutation_test.go, which shows that
// the suite notices.
//
// # How to run it
//
//	go test ./conformance
//
// runs the quick tier on every backend that has a device; see conformance_test.go for what the
// environment changes. The binary that go test -c makes needs nothing else:
//
//	SPMM_BACKEND=cuda SPMM_REQUIRE=cuda SPMM_MANIFEST=. ./conformance.test -test.run TestConformance -test.v
//
// Under NVIDIA's memory checker, without memory of the suite's around buffers:
//
//	SPMM_BACKEND=cuda SPMM_BARE=1 compute-sanitizer ./conformance.test -test.run TestConformance
//
// SPMM_MANIFEST names a folder, here manifests/ for those that are checked in; say with SPMM_COMMIT what
// they are of. Those of the software drivers are made with
//
//	go test -c ./conformance && cd conformance && export SPMM_MANIFEST=manifests SPMM_COMMIT=$(git rev-parse HEAD)
//	../conformance.test -test.run TestConformance
//	SPMM_BACKEND=vulkan,webgpu ../tools/softvk/run ../conformance.test -test.run TestConformance
//	SPMM_BACKEND=vulkan ../tools/softvk/run --plain ../conformance.test -test.run TestConformance
package conformance
