// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int quads;
    unsigned int base;
    unsigned int slots;
    unsigned int first;
    unsigned int lo;
    unsigned int count;
    unsigned int stride;
    unsigned int stype;
    unsigned int dtype;
    unsigned int full;
    unsigned int width;
    unsigned int listed;
    unsigned int run;
#ifdef DOUBLE
    unsigned int alpha_low;
    unsigned int alpha_high;
    unsigned int beta_low;
    unsigned int beta_high;
#endif
};
