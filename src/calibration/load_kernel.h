// SPDX-License-Identifier: Apache-2.0
//
// The kernel that loads a GPU, as PTX text, which the driver compiles for any GPU since Maxwell (sm_50). Each thread
// iterates eight logistic maps, x <- 3.9 x (1 - x). Their values never converge, so the toggled bits, and with them the
// power, stay constant from the first loop to the last. Nothing is written: x stays between 0 and 1, and the comparison
// before the store only prevents the compiler from removing the computation.
#pragma once

namespace joulemap::calibration {

inline constexpr const char* kLoadKernelName = "joulemap_load";

inline constexpr const char* kLoadKernelPtx = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .entry joulemap_load(
    .param .u64 nowhere,
    .param .u32 loops
)
{
    .reg .pred %p<3>;
    .reg .b32 %r<5>;
    .reg .f32 %x<8>;
    .reg .f32 %n<8>;
    .reg .f32 %t<8>;
    .reg .f32 %s<2>;
    .reg .b64 %a<3>;

    ld.param.u64 %a0, [nowhere];
    ld.param.u32 %r0, [loops];
    mov.u32 %r1, %tid.x;
    cvt.rn.f32.u32 %s0, %r1;
    fma.rn.f32 %x0, %s0, 0f3A83126F, 0f3DCCCCCD;
    fma.rn.f32 %x1, %s0, 0f3A83126F, 0f3DF5C28F;
    fma.rn.f32 %x2, %s0, 0f3A83126F, 0f3E0F5C29;
    fma.rn.f32 %x3, %s0, 0f3A83126F, 0f3E23D70A;
    fma.rn.f32 %x4, %s0, 0f3A83126F, 0f3E3851EC;
    fma.rn.f32 %x5, %s0, 0f3A83126F, 0f3E4CCCCD;
    fma.rn.f32 %x6, %s0, 0f3A83126F, 0f3E6147AE;
    fma.rn.f32 %x7, %s0, 0f3A83126F, 0f3E75C28F;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra DONE;
LOOP:
    neg.f32 %n0, %x0;
    neg.f32 %n1, %x1;
    neg.f32 %n2, %x2;
    neg.f32 %n3, %x3;
    neg.f32 %n4, %x4;
    neg.f32 %n5, %x5;
    neg.f32 %n6, %x6;
    neg.f32 %n7, %x7;
    fma.rn.f32 %t0, %n0, %x0, %x0;
    fma.rn.f32 %t1, %n1, %x1, %x1;
    fma.rn.f32 %t2, %n2, %x2, %x2;
    fma.rn.f32 %t3, %n3, %x3, %x3;
    fma.rn.f32 %t4, %n4, %x4, %x4;
    fma.rn.f32 %t5, %n5, %x5, %x5;
    fma.rn.f32 %t6, %n6, %x6, %x6;
    fma.rn.f32 %t7, %n7, %x7, %x7;
    mul.rn.f32 %x0, %t0, 0f4079999A;
    mul.rn.f32 %x1, %t1, 0f4079999A;
    mul.rn.f32 %x2, %t2, 0f4079999A;
    mul.rn.f32 %x3, %t3, 0f4079999A;
    mul.rn.f32 %x4, %t4, 0f4079999A;
    mul.rn.f32 %x5, %t5, 0f4079999A;
    mul.rn.f32 %x6, %t6, 0f4079999A;
    mul.rn.f32 %x7, %t7, 0f4079999A;
    sub.u32 %r0, %r0, 1;
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra LOOP;
DONE:
    add.rn.f32 %s1, %x0, %x1;
    add.rn.f32 %s1, %s1, %x2;
    add.rn.f32 %s1, %s1, %x3;
    add.rn.f32 %s1, %s1, %x4;
    add.rn.f32 %s1, %s1, %x5;
    add.rn.f32 %s1, %s1, %x6;
    add.rn.f32 %s1, %s1, %x7;
    setp.gt.f32 %p2, %s1, 0f42C80000;
    cvta.to.global.u64 %a1, %a0;
    @%p2 st.global.f32 [%a1], %s1;
    ret;
}
)";

}  // namespace joulemap::calibration
