// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int phase;
    unsigned int count;
    unsigned int n;
    unsigned int elem;
    unsigned int bits;
    unsigned int tile;
    unsigned int fours;
    unsigned int lanes;
    unsigned int per;
    unsigned int width;
};
