// pair returns the two elements of 16 bits of a word. Needs ELEM.
vec2 pair(uint w) {
#if ELEM == BF16
    return uintBitsToFloat(uvec2(w << 16, w & 0xffff0000u));
#else
    return unpackHalf2x16(w);
#endif
}
