//! What the crash tests and the tests of failing disks share: random runs, processes on a disk that fails, and the models
//! that judge the file that is left.

#![allow(unreachable_pub, reason = "shared by two test programs")]
#![allow(dead_code, reason = "each test program uses its part of it")]

pub mod crash;
pub mod days;
pub mod exact;
pub mod faulty;
pub mod lazy;
