// The workgroup's tile, in kernel.comp and double.comp. single writes an element of a word or more, where dst
// has such (ONE_A_WORD), and pair two of 16 bits.

void main() {
    uvec2 me = gl_LocalInvocationID.xy;
    uint number = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    uint per = ONE_A_WORD ? 1 : 2; // elements of a word
    uint l0 = number / p.tiles * (1024u >> p.shift), w0 = number % p.tiles << p.shift;
    int e0 = int(w0 * per) - int(per - 1); // a word of 16-bit elements may start at the one before
    if (p.turned != 0) {
        uint l = l0 + me.x;
        for (uint t = me.y; t < 32 * per + per - 1; t += 4) {
            uint e = uint(e0 + int(t));
            if (l < p.lines && e < p.len) tile[t][me.x] = load(e, l);
        }
        barrier();
    }
    for (uint t = gl_LocalInvocationIndex; t < 1024; t += 128) {
        uint l = l0 + (t >> p.shift), w = w0 + (t & ((1u << p.shift) - 1u));
        if (l >= p.lines) return;
        if (per == 1) single(l, w, l0, e0);
        else pair(l, w, l0, e0);
    }
}
