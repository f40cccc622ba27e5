// Quantised values of A: 8-bit codes, four in a word, and a scale for each row and SCALE_COLS columns. QUANT is S8 or
// E4M3; if it is not defined, A is not quantised.

#define S8 1
#define E4M3 2
#define SCALE_COLS 128

// level returns the number that byte i of a word stands for, without its scale.
float level(uint word, uint i) {
#if QUANT == S8
    return float(bitfieldExtract(int(word), int(8 * i), 8));
#else
    uint code = word >> 8 * i & 0xffu, size = code & 0x7fu;
    float x = size < 8 ? float(size) * 0.001953125
                       : uintBitsToFloat((size << 20) + 0x3c000000u); // multiples of 2⁻⁹, or a bias of 7 for one of 127
    return (code & 0x80u) != 0 ? -x : x;
#endif
}
