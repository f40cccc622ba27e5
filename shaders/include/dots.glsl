// Packed dot products of 8-bit integers.

#extension GL_EXT_integer_dot_product : require

// dots adds the products of 16 bytes to a sum.
int dots(int sum, uvec4 x, uvec4 y) {
    ivec4 a = ivec4(x), b = ivec4(y);
    sum += dotPacked4x8EXT(a.x, b.x);
    sum += dotPacked4x8EXT(a.y, b.y);
    sum += dotPacked4x8EXT(a.z, b.z);
    return sum + dotPacked4x8EXT(a.w, b.w);
}
