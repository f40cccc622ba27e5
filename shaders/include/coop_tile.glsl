// A tile of L·R on cooperative matrices of any shape TM × TN × TK: of f16, sums in f32, or with INT8 of 8-bit integers,
// sums in 32 bits. Both operands go through shared memory, in lines that are 16 bytes longer than they need be, which
// spreads them over the banks.
//
// Tile: a workgroup computes (ROWS × COLS), each of its subgroups (HIGH × WIDE), SUBS_ACROSS of them side by side. With
// SLICES > 1 (sliced-K) as many subgroups compute the same (HIGH × WIDE), each from every SLICES-th TK of k of a step,
// so that fewer operands are loaded from shared memory. Their sums are added in the order of the slices at the end.
// Data movement: a step is STEP of k. With STAGES = 1 the next step is prefetched to registers while one is multiplied
// from the only stage buffer. With STAGES = 2 two steps are prefetched, and the operands of the next TK of k are loaded
// from shared memory while those before are multiplied.
//
// The including file has the constants, LOCAL invocations, SHARED uvec4 of shared memory (the table computes it), and
//
//	LEFT_ALONG, RIGHT_ALONG  an operand is K-major: a line of shared memory has STEP of k. Else a line is one k.
//	Fetched                  what an invocation loads of a step
//	fetchStep(x, s)          loads step s; steps past the last may be asked for, and putStep writes zeros for one of
//	                         the operands then
//	putStep(x, s, to)        writes step s to shared memory: L from `to` on, R from `to` + LEFT on
//	putQuad(i, j, v)         takes four sums, a QUAD, of row i of the tile from column j on

#ifdef INT8
#define ELEMENT int8_t
#define TOTAL int
#define QUAD uvec4
#define quadOf(x) (x)
#define EACH 16 // elements of a uvec4
#else
#define ELEMENT float16_t
#define TOTAL float
#define QUAD vec4
#define quadOf(x) uintBitsToFloat(x)
#define EACH 8
#endif
void fetchStep(out Fetched x, uint s);
void putStep(Fetched x, uint s, uint to);
void putQuad(uint i, uint j, QUAD v);

const uint LEFT_LINE = (LEFT_ALONG != 0 ? STEP : ROWS) / EACH + 1, // uvec4 from a line to the next
           RIGHT_LINE = (RIGHT_ALONG != 0 ? STEP : COLS) / EACH + 1;
const uint LEFT = (LEFT_ALONG != 0 ? ROWS : STEP) * LEFT_LINE, // uvec4 of an operand's step
           RIGHT = (RIGHT_ALONG != 0 ? COLS : STEP) * RIGHT_LINE;
const uint OTHER = (STAGES - 1) * (LEFT + RIGHT); // where the second stage buffer begins
const uint TEAM = SUBS / SLICES; // subgroups that compute the tile from a slice
const uint WIDE = COLS / SUBS_ACROSS, HIGH = ROWS / (TEAM / SUBS_ACROSS); // a subgroup's columns and rows
const uint DOWN = HIGH / TM, ACROSS = WIDE / TN;
const uint OUT = WIDE / 4 + 1; // uvec4 from a row of a subgroup's output to the next
const uint SETS = STAGES; // of operands in registers

// Shared memory: stage buffers; at the end, TM rows of each subgroup's output. With NARROW operations have k = 8 of
// 8-bit integers, which begin in the middle of 16 bytes: UNITS elements of the array are 16 bytes.
#if NARROW
#define UNITS 2
shared uvec2 mem[2 * SHARED];
void put(uint i, uvec4 v) {
    mem[2 * i] = v.xy;
    mem[2 * i + 1] = v.zw;
}
uvec4 get(uint i) { return uvec4(mem[2 * i], mem[2 * i + 1]); }
#else
#define UNITS 1
shared uvec4 mem[SHARED];
void put(uint i, uvec4 v) { mem[i] = v; }
uvec4 get(uint i) { return mem[i]; }
#endif

#define OPERAND_A coopmat<ELEMENT, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<ELEMENT, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<TOTAL, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define BY_ROWS gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMNS gl_CooperativeMatrixLayoutColumnMajor

OPERAND_A lefts[SETS * DOWN];
OPERAND_B rights[SETS * ACROSS];
SUM sums[DOWN * ACROSS];

uint memberOf() { return gl_SubgroupID % TEAM; }
uint sliceOf() { return gl_SubgroupID / TEAM; }
uint downOf() { return memberOf() / SUBS_ACROSS * HIGH; } // the subgroup's first row
uint acrossOf() { return memberOf() % SUBS_ACROSS * WIDE; } // and column

// loadRight loads the operands from place e of a stage on, loadLeft operand i of the other.
void loadRight(const uint set, uint stage, const uint e) {
    [[unroll]] for (uint j = 0; j < ACROSS; j++) {
        uint line = acrossOf() + j * TN;
        if (RIGHT_ALONG != 0)
            coopMatLoad(rights[set * ACROSS + j], mem, UNITS * (stage + LEFT + line * RIGHT_LINE) + UNITS * e / EACH,
                        UNITS * RIGHT_LINE, BY_COLUMNS);
        else
            coopMatLoad(rights[set * ACROSS + j], mem, UNITS * (stage + LEFT + e * RIGHT_LINE) + UNITS * line / EACH,
                        UNITS * RIGHT_LINE, BY_ROWS);
    }
}
void loadLeft(const uint set, const uint i, uint stage, const uint e) {
    uint n = set * DOWN + i, line = downOf() + i * TM, pitch = UNITS * LEFT_LINE;
    if (LEFT_ALONG != 0)
        coopMatLoad(lefts[n], mem, UNITS * (stage + line * LEFT_LINE) + UNITS * e / EACH, pitch, BY_ROWS);
    else coopMatLoad(lefts[n], mem, UNITS * (stage + e * LEFT_LINE) + UNITS * line / EACH, pitch, BY_COLUMNS);
}

void multiplyRow(const uint set, const uint i) {
    [[unroll]] for (uint j = 0; j < ACROSS; j++)
        sums[i * ACROSS + j] = coopMatMulAdd(lefts[set * DOWN + i], rights[set * ACROSS + j], sums[i * ACROSS + j]);
}

// staged multiplies steps first to last - 1 by way of one stage buffer.
void staged(uint first, uint last) {
    Fetched x;
    fetchStep(x, first);
    for (uint s = first; s < last; s++) {
        barrier();
        putStep(x, s, 0);
        barrier();
        fetchStep(x, s + 1);
        const uint mine = sliceOf() * TK;
        [[unroll]] for (uint e = 0; e < STEP; e += SLICES * TK) {
            loadRight(0, 0, mine + e);
            [[unroll]] for (uint i = 0; i < DOWN; i++) {
                loadLeft(0, i, 0, mine + e);
                multiplyRow(0, i);
            }
        }
    }
}

void loadBoth(const uint set, uint stage, const uint e) {
    loadRight(set, stage, e);
    [[unroll]] for (uint i = 0; i < DOWN; i++) loadLeft(set, i, stage, e);
}
void multiplyBoth(const uint set) {
    [[unroll]] for (uint i = 0; i < DOWN; i++) multiplyRow(set, i);
}

// pipe multiplies step s, whose number is odd or even, from its stage buffer. It writes x, step s + 1, to the other one
// and starts fetching step s + 3. A step has one TK of k, or an even number: so each load knows its set when compiled.
void pipe(inout Fetched x, uint s, const uint odd) {
    const uint stage = odd * OTHER, next = OTHER - stage;
    putStep(x, s + 1, next);
    fetchStep(x, s + 3);
    if (STEP == TK) {
        barrier();
        loadBoth(1 - odd, next, 0);
        multiplyBoth(odd);
    } else {
        [[unroll]] for (uint e = 0; e < STEP / TK; e += 2) {
            loadBoth(1, stage, (e + 1) * TK);
            multiplyBoth(0);
            if (e + 2 < STEP / TK) loadBoth(0, stage, (e + 2) * TK);
            else {
                barrier();
                loadBoth(0, next, 0);
            }
            multiplyBoth(1);
        }
    }
}

// piped multiplies steps first to last - 1 by way of two stage buffers, and one of zeros if their number is odd.
void piped(uint first, uint last) {
    Fetched x, y;
    fetchStep(x, first);
    fetchStep(y, first + 1);
    putStep(x, first, 0);
    fetchStep(x, first + 2);
    barrier();
    loadBoth(0, 0, 0);
    for (uint s = first; s < last; s += 2) {
        pipe(y, s, 0);
        pipe(x, s + 1, 1);
    }
}

// meet has the subgroups wait for each other that share (HIGH × WIDE) of the output.
void meet() {
    if (SLICES > 1) barrier();
    else {
        subgroupMemoryBarrierShared();
        subgroupBarrier();
    }
}

// multiplySteps computes the tile's sums over steps first to last - 1 and passes them to putQuad, row by row.
void multiplySteps(uint first, uint last) {
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; i++) sums[i] = SUM(0);
    if (first < last) {
        if (STAGES == 1) staged(first, last);
        else piped(first, last);
    }
    barrier();
    const uint mine = gl_SubgroupID * TM * OUT, team = memberOf() * TM * OUT;
    [[dont_unroll]] for (uint i = 0; i < DOWN; i++) { // so that the code is small
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            coopMatStore(sums[j], mem, UNITS * (mine + j * TN / 4), UNITS * OUT, BY_ROWS);
        [[unroll]] for (uint j = 0; j < ACROSS * (DOWN - 1); j++) sums[j] = sums[j + ACROSS];
        meet();
        [[dont_unroll]] for (uint t = sliceOf() * gl_SubgroupSize + gl_SubgroupInvocationID; t < TM * WIDE / 4;
                             t += SLICES * gl_SubgroupSize) {
            uint at = team + t / (WIDE / 4) * OUT + t % (WIDE / 4);
            QUAD v = quadOf(get(at));
            [[unroll]] for (uint s = 1; s < SLICES; s++) v += quadOf(get(at + s * TEAM * TM * OUT));
            putQuad(downOf() + i * TM + t / (WIDE / 4), acrossOf() + t % (WIDE / 4) * 4, v);
        }
        meet();
    }
}
