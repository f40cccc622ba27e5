// Package conformance tests that kernels give the right answer, and the same answer on every device.
//
// Run multiplies some hundreds of problems with every variant of every kernel that a device can run, and returns a
// Manifest: what was run, on what, and with which outcome. Manifests of several devices are checked in below
// manifests/, which is a module of its own. Verifier recomputes their claims on the CPU alone.
//
// # What right means
//
// Matrix units differ in the order, the width and the rounding of their sums. So there are classes of problems, each
// with its own criterion:
//
//   - T1+ and T1± have exact answers, and a digest must be that of the exact answer, bit for bit, on
//     every device. Their numbers lie on a grid: each product (and beta/alpha times each element
//     of C) is a multiple of some 2^g, no smaller than 2^-126; Σ|a·b|+|c| is at most 2^(g+24); no
//     operand is subnormal; and the exponents of two operands of a product add up to at most g+23.
//     Then each partial sum, in any order, is a number of f32, and a unit that truncates
//     addends to 23 bits below the largest exponent loses nothing. In T1+ all products of an output have
//     one sign; in T1± they do not. Some devices' units compute these wrongly, and may have
//     a published waiver. A dropped entry, a wrong index or a lost bit always shows.
//   - nonfinite is T1± with infinities and NaN in A, B and C. An output is NaN if a product is NaN or
//     infinities of both signs meet; else infinite if a product is; else exact. Elements that A
//     does not store do not touch B; stored zeros do.
//   - subnormal has subnormal operands. The exact answer is right, and so is that with those operands
//     taken for zero.
//   - T2 has numbers like those of real data. |c − c*| ≤ γ(1+γ)·Σ|a||b| with γ = 3·(entries+1)·2⁻²³, see
//     package oracle; where operands are subnormal, a device may take them for zero. That is a weak demand: a
//     dropped entry of thousands may pass. Epilogues with GELU and SiLU are in this class, also of infinities and
//     NaN; those with a bias and ReLU are in the classes above, too.
//   - T3 is the same in reproducible mode, of all formats at each precision p: one right answer, bit for bit,
//     which package oracle computes from the definition (docs/reproducible.md). Its numbers are normal,
//     far apart, cancelling, subnormal, zeros of both signs, infinities and NaN; sums very close to the middle of two
//     numbers, subnormal sums, and sums as large as they get. With a bias, sums that it cancels, brings to a tie, or to
//     overflow.
//
// Before outputs are hashed, -0 becomes +0 and every NaN the same NaN. A C of 16 bits is rounded once, to nearest even,
// from the exact sum.
//
// In all classes each multiplication runs twice and must give the same bits. Padding between rows, undefined memory,
// and C if beta is 0 contain NaN. Padding of C, arguments that are only read, sentinel bytes behind each buffer and
// canary buffers between them must be unchanged.
//
// # How to read a case's name
//
//	cvse/v8/f16/T1±/m29k60n33/vec8/beta-1/ldpad
//
// is format cvse with panels of 8 rows, computed in f16, class T1±, A of 29×60 and B of 60×33, A's
// entries in whole vectors of 8 (see pattern.go), beta -1, and leading dimensions larger than
// needed. A kind of numbers may stand after the pattern (see recipe.go), an epilogue after beta, as bias-row, relu or
// bias-col/relu, and in T3 the precision, as p23 or pauto. Further words at the end:
//
//	host, tensor   through package spmm, with B and C in the host's memory or on the device;
//	               without either the kernel is launched by its table alone
//	bcol, ccol     B, C column-major
//	a:f32, c:f16   A (b: B, c: C, bias: the bias) stored in another type than usual
//	reuse          the plan, B and C have multiplied with another alpha, beta and B before
//	values:tensor  the plan was made with other values of A; those of a tensor (host: of the host's memory) replace them;
//	               the outputs must be right, and have the bits of a plan that is made with these values
//	transpose      Aᵀ is prepared, to be transposed
//	right          Cᵀ = alpha·Bᵀ·Aᵀ + beta·Cᵀ is computed, Aᵀ on the right; bcol and ccol are then row-major Bᵀ and Cᵀ
//	sample:eighth  A stores every element, and Plan.Sample computes the elements of C at the entries of pattern eighth,
//	               from X = A and Y = Bᵀ, with alpha as each entry's scale
//	seed2          other numbers
//
// A manifest has one line for each case and variant that it ran with. A case for which the device has no variant is
// unsupported, which is not a pass. The device's capabilities decide that (eligible.go): if the device meets a
// variant's needs but does not load or run it, the case has failed.
//
// # How to add cases
//
// Cases of a new format or variant are made from the kernels' tables. A new problem is a line in one of the lists of
// shapes in cases.go; a new pattern is an entry of patterns. Kinds of numbers are in exact.go, general.go and
// reproducible.go; tests check those of T1 against the conditions above.
//
// A manifest is complete if it has all cases and variants that its device can run. So the checked-in ones are made anew
// when a problem, a format or a variant is added, and the first such change after a release raises Suite. A released
// version of the suite never changes: neither its inputs nor its criteria.
//
// Each fault that a kernel can have should be among the mutations of mutation_test.go, which shows in seconds that the
// suite detects it, or of the command conformance/mutants, which changes sources.
//
// Verifier checks that the seal and the summary are right, that no case or variant is missing or listed twice, that
// each input is that of its recipe and each exact output the right one, that each verdict follows from these, and that
// "unsupported" follows from the recorded capabilities. It cannot recompute T2's outputs and probes. It cannot know
// whether the device really gave the outputs of T1 and T3; only another run shows that.
//
// # How to run it
//
//	spmmrun conform --backend vulkan -o manifest.json.gz
//	spmmrun verify manifest.json.gz
//
// docs/conformance.md says more. The tests do the same on every backend that has a device:
//
//	go test ./conformance
//
// conformance_test.go lists the environment variables. Under NVIDIA's memory checker, without the suite's guard memory
// around buffers:
//
//	compute-sanitizer spmmrun conform --backend cuda --bare
//
// The manifests that are checked in are made by conformance/manifests/make.
package conformance
