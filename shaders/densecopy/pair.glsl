// Two elements of 16 bits, in kernel.comp and double.comp. NUMBER is the type that load, value and scale return;
// SHORTENED rounds one to an element and LENGTHENED is the way back; BETA is the parameter.

// pair writes word w of line l, of 16-bit elements.
void pair(uint l, uint w, uint l0, int e0) {
    uvec2 a = at(uvec2(p.dst), l, 2 * p.ldd);
    int e = int(2 * w) - int((a.x >> 1) & 1u); // the word's first element, in line l
    a.x &= ~3u;
    bool tight = p.ldd == p.len;
    if (e < 0 && tight && l > 0) return; // the previous line's
    int len = int(p.len);
    bool lo = e >= 0 && e < len, hi = e + 1 < len;
    bool wraps = e + 1 == len && tight && l + 1 < p.lines; // its second element starts the next line
    if (!lo && !hi) return;
    NUMBER x0 = 0, x1 = 0;
    if (lo) x0 = value(l, e, l0, e0);
    if (hi) x1 = value(l, e + 1, l0, e0);
    if (wraps) x1 = p.turned != 0 ? load(0, l + 1) : load(l + 1, 0);
    hi = hi || wraps;
    uint old = BETA != 0 || !lo || !hi ? Words(a).v[w] : 0;
    uint y0 = old & 0xffffu, y1 = old >> 16;
    if (lo) y0 = SHORTENED(scale(x0, LENGTHENED(y0), l, e));
    if (hi) y1 = SHORTENED(scale(x1, LENGTHENED(y1), wraps ? l + 1 : l, wraps ? 0 : e + 1));
    Words(a).v[w] = y0 | (y1 << 16);
}
