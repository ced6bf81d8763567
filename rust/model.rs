// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Rules of DAT (Direct Access Transport) as pure code.
//!
//! This code uses `core` only: it neither allocates nor locks, and it calls no kernel function. The
//! same files are built into the module and into `userspace-test/tests/model`. There they are run
//! through property tests, through every interleaving of their threads (loom) and through mutation
//! tests. Rules that are easy to get wrong belong here.
//!
//! Nothing here panics: no indexing, no `unwrap`, no arithmetic that can overflow.
#![deny(unsafe_code)]

/// Declares an enum whose discriminants are DAT's numbers, and conversions in both directions.
macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub(crate) enum $name {
            $($(#[$doc])* $variant = $number,)+
        }

        impl $name {
            /// Returns the value with this DAT number; `None` if there is none.
            #[allow(dead_code, reason = "the kernel does not convert every enum from numbers")]
            pub(crate) const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// Returns DAT's number.
            pub(crate) const fn number(self) -> u32 {
                self as u32
            }
        }
    };
}

pub(crate) mod adapter_name;
pub(crate) mod allowance;
pub(crate) mod atomic;
pub(crate) mod bell;
pub(crate) mod cno;
pub(crate) mod code;
pub(crate) mod command;
pub(crate) mod completion;
pub(crate) mod cq_room;
pub(crate) mod direct_event;
pub(crate) mod driver;
pub(crate) mod dto;
pub(crate) mod ep;
pub(crate) mod event;
pub(crate) mod extension;
pub(crate) mod fast_lmr;
pub(crate) mod footprint;
pub(crate) mod handle;
pub(crate) mod held_receives;
pub(crate) mod keepalive;
pub(crate) mod mapped_posts;
pub(crate) mod mapped_ring;
pub(crate) mod operation;
pub(crate) mod pieces;
pub(crate) mod qualifier;
pub(crate) mod recent_region;
pub(crate) mod requests;
pub(crate) mod retry;
pub(crate) mod ring;
pub(crate) mod ring_size;
pub(crate) mod segments;
pub(crate) mod shared_receives;
pub(crate) mod shared_timer;
pub(crate) mod shortest_delay;
pub(crate) mod slot_contexts;
pub(crate) mod stat;
pub(crate) mod streams;
pub(crate) mod trace;
pub(crate) mod traffic;
pub(crate) mod upcall;
pub(crate) mod vector;
pub(crate) mod wait;
pub(crate) mod watermarks;
