// Taking values one after the other from shared memory, words.v, which has them in rows of ROW_WORDS words.

// taken returns the word that a chain has next, if the mask says that there is one, else 0. `from` is the word's
// number. (Compilers make a predicated load of the branch, and one instruction of each sum.)
uint taken(uint mask, uint bit, inout uint from) {
    uint x = 0, at_ = from;
    bool is = (mask & bit) != 0;
    from += is ? ROW_WORDS : 0;
    if (is) x = words.v[at_];
    return x;
}
