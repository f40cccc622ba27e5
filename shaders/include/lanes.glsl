// Cooperative matrices of 16×8×16 whose fragment layout is that of PTX's mma.m16n8k16. Variants that require it ask for
// backend.Caps.Lanes. Lane l = 4g + t holds
//
//	of the first operand, 16×16, rows g and g + 8,     } both at
//	of the second operand, 16×8, column g,             } k = 2t, 2t+1, 2t+8, 2t+9
//	of sums, 16×8, rows g and g + 8 at columns 2t and 2t+1.
//
// So a lane can fill fragments from its own loads, without shared memory. The mapping is that of SSpMM (§III-B, §IV-B):
// Cᵀ = Bᵀ·Aᵀ, 8 rows of A on the operation's n = 8, columns of B on its m = 16. A lane loads 8 columns, from 8g on, of
// four rows of B, 128 bits each, which are its fragments of four operations: operation j has columns 2j and 2j + 1 of
// the 8. Any vectors may take the k slots as long as both operands agree: here they are the lane's four.

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>

// values8 returns operand B: the lane's four values, those of the lower vectors first.
OPERAND_B values8(uvec2 w) {
    f16vec2 lo = unpackFloat2x16(w.x), hi = unpackFloat2x16(w.y);
    OPERAND_B y;
    y[0] = lo.x;
    y[1] = lo.y;
    y[2] = hi.x;
    y[3] = hi.y;
    return y;
}

// columns16 returns operand A of operation j: word j of the lane's four rows.
OPERAND_A columns16(uint w0, uint w1, uint w2, uint w3) {
    f16vec2 r0 = unpackFloat2x16(w0), r1 = unpackFloat2x16(w1), r2 = unpackFloat2x16(w2), r3 = unpackFloat2x16(w3);
    OPERAND_A x;
    x[0] = r0.x;
    x[1] = r1.x;
    x[2] = r2.x;
    x[3] = r3.x;
    x[4] = r0.y;
    x[5] = r1.y;
    x[6] = r2.y;
    x[7] = r3.y;
    return x;
}

// quadOf returns four neighbouring sums of row 2t + e, from the lane's first column on, of operations j and j + 1.
vec4 quadOf(SUM x, SUM y, uint e) { return vec4(x[e], x[2 + e], y[e], y[2 + e]); }
