// 64-bit addresses as pairs of 32-bit words, for buffers of any size. An index into a buffer reference is a signed
// 32-bit number, and devices may lack 64-bit integers.

#extension GL_EXT_buffer_reference_uvec2 : require

// at returns the address count·stride bytes after a.
uvec2 at(uvec2 a, uint count, uint stride) {
    uint hi, lo, carry;
    umulExtended(count, stride, hi, lo);
    a.x = uaddCarry(a.x, lo, carry);
    a.y += hi + carry;
    return a;
}
