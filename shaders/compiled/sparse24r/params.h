// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int blocks;
    unsigned int rows;
    unsigned int n;
    unsigned int ldb;
    unsigned int ldc;
    unsigned int store;
    float alpha;
    float beta;
    unsigned int cols;
    unsigned int width;
    unsigned int groups;
    unsigned int keep;
    unsigned int every;
    unsigned int wide;
    unsigned int tall;
    unsigned int panels;
};
