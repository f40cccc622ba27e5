// Quantised values of A: codes of 8 bits, four in a word, of kind QUANT (1: integers, 2: e4m3).

// level returns the number that byte i of a word stands for, without its scale.
fn level(word: u32, i: u32) -> f32 {
    if (QUANT == 1u) { return f32(extractBits(bitcast<i32>(word), 8u * i, 8u)); }
    let code = (word >> (8u * i)) & 0xffu;
    let size = code & 0x7fu;
    var x = f32(size) * 0.001953125; // multiples of 2^-9
    if (size >= 8u) { x = bitcast<f32>((size << 20u) + 0x3c000000u); } // the exponent's bias: 127 in place of 7
    return select(x, -x, (code & 0x80u) != 0u);
}
