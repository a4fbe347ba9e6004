#include "textflag.h"

// Row i of sixteen message blocks, each word in the order of this CPU.
#define LOAD(i, row) \
	MOVQ      (8*i)(BX), AX;         \
	VMOVDQU32 (AX)(DX*1), row;       \
	VPSHUFB   order<>(SB), row, row

// Words of two rows, side by side.
#define PAIR(r, s, low, high) \
	VPUNPCKLDQ s, r, low; \
	VPUNPCKHDQ s, r, high

// Pairs of words of four rows, side by side.
#define QUAD(r, s, low, high) \
	VPUNPCKLQDQ s, r, low; \
	VPUNPCKHQDQ s, r, high

// Even and odd quarters of two registers.
#define QUARTERS(r, s, even, odd) \
	VSHUFI32X4 $0x88, s, r, even; \
	VSHUFI32X4 $0xdd, s, r, odd

// One round of FIPS 180-4, section 6.2.2, in sixteen lanes; the caller turns
// the names instead of the registers. Ternary tables: 0x96 is the sum of three
// bits, 0xca is Ch, 0xe8 is Maj.
#define ROUND(i, a, b, c, d, e, f, g, h, w) \
	VPADDD.BCST (4*i)(R8), h, h;   \
	VPADDD      w, h, h;           \
	VPRORD      $6, e, Z8;         \
	VPRORD      $11, e, Z9;        \
	VPRORD      $25, e, Z10;       \
	VPTERNLOGD  $0x96, Z9, Z10, Z8; \
	VMOVDQA32   e, Z11;            \
	VPTERNLOGD  $0xca, g, f, Z11;  \
	VPADDD      Z8, h, h;          \
	VPADDD      Z11, h, h;         \
	VPADDD      h, d, d;           \
	VPRORD      $2, a, Z12;        \
	VPRORD      $13, a, Z13;       \
	VPRORD      $22, a, Z14;       \
	VPTERNLOGD  $0x96, Z13, Z14, Z12; \
	VMOVDQA32   a, Z15;            \
	VPTERNLOGD  $0xe8, c, b, Z15;  \
	VPADDD      Z12, h, h;         \
	VPADDD      Z15, h, h

// The word of sixteen rounds later.
#define SCHEDULE(w, w1, w9, w14) \
	VPRORD     $7, w1, Z8;          \
	VPRORD     $18, w1, Z9;         \
	VPSRLD     $3, w1, Z10;         \
	VPTERNLOGD $0x96, Z9, Z10, Z8;  \
	VPRORD     $17, w14, Z11;       \
	VPRORD     $19, w14, Z12;       \
	VPSRLD     $10, w14, Z13;       \
	VPTERNLOGD $0x96, Z12, Z13, Z11; \
	VPADDD     Z8, w, w;            \
	VPADDD     w9, w, w;            \
	VPADDD     Z11, w, w

// func blocks(state *[8][16]uint32, at *[16]*byte, n int)
// Needs AVX512F and AVX512BW.
TEXT ·blocks(SB), NOSPLIT, $0-24
	MOVQ state+0(FP), DI
	MOVQ at+8(FP), BX
	MOVQ n+16(FP), CX
	XORQ DX, DX

block:
	LOAD(0, Z16)
	LOAD(1, Z17)
	LOAD(2, Z18)
	LOAD(3, Z19)
	LOAD(4, Z20)
	LOAD(5, Z21)
	LOAD(6, Z22)
	LOAD(7, Z23)
	LOAD(8, Z24)
	LOAD(9, Z25)
	LOAD(10, Z26)
	LOAD(11, Z27)
	LOAD(12, Z28)
	LOAD(13, Z29)
	LOAD(14, Z30)
	LOAD(15, Z31)

	// Transpose: row i becomes word i of all lanes.
	PAIR(Z16, Z17, Z0, Z1)
	PAIR(Z18, Z19, Z2, Z3)
	PAIR(Z20, Z21, Z4, Z5)
	PAIR(Z22, Z23, Z6, Z7)
	PAIR(Z24, Z25, Z8, Z9)
	PAIR(Z26, Z27, Z10, Z11)
	PAIR(Z28, Z29, Z12, Z13)
	PAIR(Z30, Z31, Z14, Z15)
	QUAD(Z0, Z2, Z16, Z17)
	QUAD(Z1, Z3, Z18, Z19)
	QUAD(Z4, Z6, Z20, Z21)
	QUAD(Z5, Z7, Z22, Z23)
	QUAD(Z8, Z10, Z24, Z25)
	QUAD(Z9, Z11, Z26, Z27)
	QUAD(Z12, Z14, Z28, Z29)
	QUAD(Z13, Z15, Z30, Z31)
	QUARTERS(Z16, Z20, Z0, Z1)
	QUARTERS(Z24, Z28, Z2, Z3)
	QUARTERS(Z17, Z21, Z4, Z5)
	QUARTERS(Z25, Z29, Z6, Z7)
	QUARTERS(Z18, Z22, Z8, Z9)
	QUARTERS(Z26, Z30, Z10, Z11)
	QUARTERS(Z19, Z23, Z12, Z13)
	QUARTERS(Z27, Z31, Z14, Z15)
	QUARTERS(Z0, Z2, Z16, Z24)
	QUARTERS(Z1, Z3, Z20, Z28)
	QUARTERS(Z4, Z6, Z17, Z25)
	QUARTERS(Z5, Z7, Z21, Z29)
	QUARTERS(Z8, Z10, Z18, Z26)
	QUARTERS(Z9, Z11, Z22, Z30)
	QUARTERS(Z12, Z14, Z19, Z27)
	QUARTERS(Z13, Z15, Z23, Z31)

	VMOVDQU32 0(DI), Z0
	VMOVDQU32 64(DI), Z1
	VMOVDQU32 128(DI), Z2
	VMOVDQU32 192(DI), Z3
	VMOVDQU32 256(DI), Z4
	VMOVDQU32 320(DI), Z5
	VMOVDQU32 384(DI), Z6
	VMOVDQU32 448(DI), Z7
	LEAQ      constants<>(SB), R8
	MOVQ      $3, R9

rounds:
	ROUND(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z16)
	SCHEDULE(Z16, Z17, Z25, Z30)
	ROUND(1, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z17)
	SCHEDULE(Z17, Z18, Z26, Z31)
	ROUND(2, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z18)
	SCHEDULE(Z18, Z19, Z27, Z16)
	ROUND(3, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z19)
	SCHEDULE(Z19, Z20, Z28, Z17)
	ROUND(4, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z20)
	SCHEDULE(Z20, Z21, Z29, Z18)
	ROUND(5, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z21)
	SCHEDULE(Z21, Z22, Z30, Z19)
	ROUND(6, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z22)
	SCHEDULE(Z22, Z23, Z31, Z20)
	ROUND(7, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z23)
	SCHEDULE(Z23, Z24, Z16, Z21)
	ROUND(8, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z24)
	SCHEDULE(Z24, Z25, Z17, Z22)
	ROUND(9, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z25)
	SCHEDULE(Z25, Z26, Z18, Z23)
	ROUND(10, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z26)
	SCHEDULE(Z26, Z27, Z19, Z24)
	ROUND(11, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z27)
	SCHEDULE(Z27, Z28, Z20, Z25)
	ROUND(12, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z28)
	SCHEDULE(Z28, Z29, Z21, Z26)
	ROUND(13, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z29)
	SCHEDULE(Z29, Z30, Z22, Z27)
	ROUND(14, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z30)
	SCHEDULE(Z30, Z31, Z23, Z28)
	ROUND(15, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z31)
	SCHEDULE(Z31, Z16, Z24, Z29)
	ADDQ $64, R8
	DECQ R9
	JNZ  rounds

	ROUND(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z16)
	ROUND(1, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z17)
	ROUND(2, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z18)
	ROUND(3, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z19)
	ROUND(4, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z20)
	ROUND(5, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z21)
	ROUND(6, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z22)
	ROUND(7, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z23)
	ROUND(8, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z24)
	ROUND(9, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z25)
	ROUND(10, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z5, Z26)
	ROUND(11, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z4, Z27)
	ROUND(12, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z3, Z28)
	ROUND(13, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z2, Z29)
	ROUND(14, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z30)
	ROUND(15, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z31)

	VPADDD    0(DI), Z0, Z0
	VPADDD    64(DI), Z1, Z1
	VPADDD    128(DI), Z2, Z2
	VPADDD    192(DI), Z3, Z3
	VPADDD    256(DI), Z4, Z4
	VPADDD    320(DI), Z5, Z5
	VPADDD    384(DI), Z6, Z6
	VPADDD    448(DI), Z7, Z7
	VMOVDQU32 Z0, 0(DI)
	VMOVDQU32 Z1, 64(DI)
	VMOVDQU32 Z2, 128(DI)
	VMOVDQU32 Z3, 192(DI)
	VMOVDQU32 Z4, 256(DI)
	VMOVDQU32 Z5, 320(DI)
	VMOVDQU32 Z6, 384(DI)
	VMOVDQU32 Z7, 448(DI)

	ADDQ $64, DX
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

// Reverses the bytes of each word.
DATA order<>+0x00(SB)/8, $0x0405060700010203
DATA order<>+0x08(SB)/8, $0x0c0d0e0f08090a0b
DATA order<>+0x10(SB)/8, $0x0405060700010203
DATA order<>+0x18(SB)/8, $0x0c0d0e0f08090a0b
DATA order<>+0x20(SB)/8, $0x0405060700010203
DATA order<>+0x28(SB)/8, $0x0c0d0e0f08090a0b
DATA order<>+0x30(SB)/8, $0x0405060700010203
DATA order<>+0x38(SB)/8, $0x0c0d0e0f08090a0b
GLOBL order<>(SB), RODATA|NOPTR, $64

// FIPS 180-4, section 4.2.2.
DATA constants<>+0x000(SB)/8, $0x71374491428a2f98
DATA constants<>+0x008(SB)/8, $0xe9b5dba5b5c0fbcf
DATA constants<>+0x010(SB)/8, $0x59f111f13956c25b
DATA constants<>+0x018(SB)/8, $0xab1c5ed5923f82a4
DATA constants<>+0x020(SB)/8, $0x12835b01d807aa98
DATA constants<>+0x028(SB)/8, $0x550c7dc3243185be
DATA constants<>+0x030(SB)/8, $0x80deb1fe72be5d74
DATA constants<>+0x038(SB)/8, $0xc19bf1749bdc06a7
DATA constants<>+0x040(SB)/8, $0xefbe4786e49b69c1
DATA constants<>+0x048(SB)/8, $0x240ca1cc0fc19dc6
DATA constants<>+0x050(SB)/8, $0x4a7484aa2de92c6f
DATA constants<>+0x058(SB)/8, $0x76f988da5cb0a9dc
DATA constants<>+0x060(SB)/8, $0xa831c66d983e5152
DATA constants<>+0x068(SB)/8, $0xbf597fc7b00327c8
DATA constants<>+0x070(SB)/8, $0xd5a79147c6e00bf3
DATA constants<>+0x078(SB)/8, $0x1429296706ca6351
DATA constants<>+0x080(SB)/8, $0x2e1b213827b70a85
DATA constants<>+0x088(SB)/8, $0x53380d134d2c6dfc
DATA constants<>+0x090(SB)/8, $0x766a0abb650a7354
DATA constants<>+0x098(SB)/8, $0x92722c8581c2c92e
DATA constants<>+0x0a0(SB)/8, $0xa81a664ba2bfe8a1
DATA constants<>+0x0a8(SB)/8, $0xc76c51a3c24b8b70
DATA constants<>+0x0b0(SB)/8, $0xd6990624d192e819
DATA constants<>+0x0b8(SB)/8, $0x106aa070f40e3585
DATA constants<>+0x0c0(SB)/8, $0x1e376c0819a4c116
DATA constants<>+0x0c8(SB)/8, $0x34b0bcb52748774c
DATA constants<>+0x0d0(SB)/8, $0x4ed8aa4a391c0cb3
DATA constants<>+0x0d8(SB)/8, $0x682e6ff35b9cca4f
DATA constants<>+0x0e0(SB)/8, $0x78a5636f748f82ee
DATA constants<>+0x0e8(SB)/8, $0x8cc7020884c87814
DATA constants<>+0x0f0(SB)/8, $0xa4506ceb90befffa
DATA constants<>+0x0f8(SB)/8, $0xc67178f2bef9a3f7
GLOBL constants<>(SB), RODATA|NOPTR, $256
