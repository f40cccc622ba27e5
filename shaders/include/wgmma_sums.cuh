// Accumulators of wgmma with 8 to 256 columns. SUMS_N is the asm operands for float d[N / 8][4], REGS_N their names in
// the asm text.

#pragma once

#define SUMS_TILE(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define SUMS_TILES(i) SUMS_TILE(i), SUMS_TILE(i + 1), SUMS_TILE(i + 2), SUMS_TILE(i + 3)
#define SUMS_8 SUMS_TILE(0)
#define SUMS_16 SUMS_TILE(0), SUMS_TILE(1)
#define SUMS_32 SUMS_TILES(0)
#define SUMS_64 SUMS_32, SUMS_TILES(4)
#define SUMS_96 SUMS_64, SUMS_TILES(8)
#define SUMS_112 SUMS_96, SUMS_TILE(12), SUMS_TILE(13)
#define SUMS_128 SUMS_96, SUMS_TILES(12)
#define SUMS_160 SUMS_128, SUMS_TILES(16)
#define SUMS_168 SUMS_160, SUMS_TILE(20)
#define SUMS_192 SUMS_160, SUMS_TILES(20)
#define SUMS_224 SUMS_192, SUMS_TILES(24)
#define SUMS_256 SUMS_224, SUMS_TILES(28)
#define REGS_8 "%0,%1,%2,%3"
#define REGS_16 REGS_8 ",%4,%5,%6,%7"
#define REGS_32 REGS_16 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define REGS_64 REGS_32 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define REGS_96 REGS_64 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define REGS_112 REGS_96 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define REGS_128 REGS_112 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define REGS_160 REGS_128 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define REGS_168 REGS_160 ",%80,%81,%82,%83"
#define REGS_192 REGS_168 ",%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define REGS_224 REGS_192 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111"
#define REGS_256 REGS_224 ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

// wgmma_hold keeps the compiler from moving uses of the sums before it: the instructions write them until they are
// waited for.
#define WGMMA_HOLD(N) \
    __device__ __forceinline__ void wgmma_hold(float(&d)[N / 8][4]) { asm volatile("" : SUMS_##N::"memory"); }
WGMMA_HOLD(8)
WGMMA_HOLD(16)
WGMMA_HOLD(32)
WGMMA_HOLD(64)
WGMMA_HOLD(96)
WGMMA_HOLD(112)
WGMMA_HOLD(128)
WGMMA_HOLD(160)
WGMMA_HOLD(168)
WGMMA_HOLD(192)
WGMMA_HOLD(224)
WGMMA_HOLD(256)
#undef WGMMA_HOLD
