// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int phase;
    unsigned int m;
    unsigned int n;
    unsigned int ldb;
    unsigned int ldc;
    unsigned int ldp;
    unsigned int pieces;
    unsigned int items;
    unsigned int width;
    unsigned int per;
    unsigned int longest;
    unsigned int across;
    unsigned int along;
    unsigned int store;
    float alpha;
    float beta;
#ifdef DOUBLE
    unsigned int alpha_low;
    unsigned int alpha_high;
    unsigned int beta_low;
    unsigned int beta_high;
#endif
};
