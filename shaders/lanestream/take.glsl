// Taking values one after the other from shared memory, words.v, where they lie in rows of ROW_WORDS words.

// taken returns the next word of a chain if the mask has the bit, and moves on to the one after it; else it returns 0.
// `from` is the number of the next word. (Compilers make one predicated load of the branch, and one instruction of each
// sum.)
uint taken(uint mask, uint bit, inout uint from) {
    uint x = 0, at_ = from;
    bool is = (mask & bit) != 0;
    from += is ? ROW_WORDS : 0;
    if (is) x = words.v[at_];
    return x;
}
