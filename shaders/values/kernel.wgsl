// Computes: new values of 16 or 32 bits, written to their slots of a packed array (values.go explains the map).
// Tile: four words of the array an invocation.
// Data movement: straight through registers: coalesced writes, gathered reads.
// Bound by: memory bandwidth.

{{.HALF}}

// load returns element i of src as one of dst.
fn load(i: u32) -> u32 {
    let at = i * p.stride;
    var x = 0u;
    if (p.stype == 0u) {
        x = src[at];
    } else {
        x = (src[at / 2u] >> (16u * (at % 2u))) & 0xffffu;
        if (p.stype == p.dtype) { return x; }
        x = widen(x, p.stype);
    }
    if (p.dtype == 0u) { return x; }
    return narrow(x, p.dtype);
}

// put returns a word of dst with entry e, if src holds it, in place of the bits of mask, shift up.
fn put(word: u32, e: u32, mask: u32, shift: u32) -> u32 {
    let i = e - p.lo;
    if (i >= p.count) { return word; }
    return (word & ~(mask << shift)) | (load(i) << shift);
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) me: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let quad = (group.x + group.z * p.width) * {{.LX}}u + me;
    if (quad >= p.quads) { return; }
    var per = 2u; // slots of a word
    var mask = 0xffffu;
    if (p.dtype == 0u) {
        per = 1u;
        mask = 0xffffffffu;
    }
    let slot = 4u * per * quad;
    let all = (1u << (4u * per)) - 1u;
    var held = all; // which slots hold entries
    var next = p.first + slot; // the number of the first: of the entry, or in sources
    if (p.slots > 0u) {
        if (p.slots - slot < 4u * per) { held = (1u << (p.slots - slot)) - 1u; }
    } else {
        let bits = groups[slot / 32u * 2u];
        held = (bits >> (slot % 32u)) & all;
        next = groups[slot / 32u * 2u + 1u] + countOneBits(bits & ((1u << (slot % 32u)) - 1u));
    }
    if (held == 0u) { return; }
    for (var k = 0u; k < 4u; k++) {
        let at = (p.base + quad) * 4u + k;
        if ((held & ((1u << per) - 1u)) == 0u) {
            held = held >> per;
            continue;
        }
        var word = 0u;
        if (p.full == 0u) { word = dst[at]; }
        for (var h = 0u; h < per; h++) {
            if ((held & 1u) != 0u) {
                var e = next;
                if (p.slots == 0u) { e = sources[next]; }
                word = put(word, e, mask, 16u * h);
                next++;
            }
            held = held >> 1u;
        }
        dst[at] = word;
    }
}
