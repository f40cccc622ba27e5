// The differences of streams of twins (twins.go). A value is a word: two neighbouring columns of a row. In each row of
// values the lanes' first chains come before all second chains. A step, 32 columns, has one word of the mask for each
// lane.

// maskAt returns the address of a group's mask from a step on.
uvec2 maskAt(uint group, uint step) { return at(uvec2(p.mask), group * p.segments * p.steps + step, 128); }

// storedTwins returns two bits: which halves of a value are entries. It is value number `value` counted from row `row`
// of values on, 64 a row.
uint storedTwins(uint row, uint value) {
    uvec2 words = at(at(remainderCols(), remainderAt(p.rows), 4), row, CHAINS / 4);
    return Words(words).v[value >> 4] >> 2 * (value & 15u) & 3u;
}
// entries returns an output computed from the entries alone: the sum over row r of a group times column j of B. entries
// returns the sum of row r of a group's entries times column j of B.
float entries(uint group, uint r, uint j) {
    Terms sum = Terms(0, 0);
    uint mine = r >> 3 & 1u | r >> 4 << 2; // the row's positions, without their bit 1
    for (uint split = 0; split < p.splits; split++) {
        uint row = rowAt(group * p.splits + split);
        uvec2 values = at(uvec2(p.values), row, CHAINS * 4);
        for (uint lane = 4 * (r & 7u); lane < 4 * (r & 7u) + 4; lane++)
            for (uint chain = 0; chain < 2; chain++) {
                uint value = 32 * chain + lane;
                for (uint s = firstSegment(split) * p.steps; s < firstSegment(split + 1) * p.steps; s++) {
                    uint word = Words(maskAt(group, s)).v[lane] >> chain;
                    for (uint i = 0; i < 16; i++) {
                        if ((word >> 2 * i & 1u) == 0) continue;
                        uint k = s * STEP_COLS + 16 * (i >> 1 & 1u) + 8 * chain + 2 * (lane & 3u);
                        if ((i & 13u) == mine) {
                            uint halves = storedTwins(row, value);
                            for (uint e = 0; e < 2; e++)
                                if ((halves >> e & 1u) != 0)
                                    addTerm(sum, element(values, 2 * value + e), element(rowOfB(k + e), j));
                        }
                        value += CHAINS;
                    }
                }
            }
    }
    uint row = group * GROUP_ROWS + r;
    for (uint i = remainderAt(row); i < remainderAt(row + 1); i++) {
        uint k = Words(remainderCols()).v[i];
        addTerm(sum, entryOf(remainderValues(), i, row, k), element(rowOfB(k), j));
    }
    return total(sum);
}
