// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int lines;
    unsigned int len;
    unsigned int first;
    unsigned int lds;
    unsigned int ldd;
    unsigned int stype;
    unsigned int store;
    unsigned int turned;
    unsigned int shift;
    unsigned int tiles;
    unsigned int width;
    float alpha;
    float beta;
#ifdef DOUBLE
    unsigned int alpha_low;
    unsigned int alpha_high;
    unsigned int beta_low;
    unsigned int beta_high;
#endif
};
