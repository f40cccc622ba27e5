// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int rows;
    unsigned int n;
    unsigned int cols;
    unsigned int lda;
    unsigned int ldb;
    unsigned int ldc;
    unsigned int order;
    unsigned int store;
    float alpha;
    float beta;
    unsigned int width;
    unsigned int across;
    unsigned int words;
    unsigned int whole;
    unsigned int splits;
};
