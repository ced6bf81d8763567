// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Arguments and results of calls on Local Memory Regions (LMRs).

/// Arguments of `dat_lmr_create` other than handles.
#[derive(Clone, Copy)]
pub(crate) struct ProcessArguments {
    /// Start of the memory in the process.
    pub(crate) start: u64,
    /// Length in bytes.
    pub(crate) length: u64,
    /// `DAT_MEM_PRIV_FLAGS`.
    pub(crate) privileges: u32,
    /// Whether addresses in segments begin at 0, in place of `start`.
    pub(crate) zero_based: bool,
}

/// Arguments and results of creating an LMR.
#[derive(Clone, Copy, Default)]
pub(crate) struct Param {
    pub(crate) pz: u64,
    /// Address of the first byte in segments.
    pub(crate) address: u64,
    /// Length in bytes.
    pub(crate) length: u64,
    /// `DAT_MEM_PRIV_FLAGS`.
    pub(crate) privileges: u32,
    pub(crate) description: Description,
    pub(crate) lmr_context: u32,
    pub(crate) rmr_context: u32,
}

/// Memory as the consumer describes it, for queries only.
#[derive(Clone, Copy, Default)]
pub(crate) struct Description {
    /// `DAT_MEM_TYPE`.
    pub(crate) mem_type: u32,
    /// Words of `DAT_REGION_DESCRIPTION`.
    pub(crate) region: [u64; 2],
    /// Whether addresses begin at 0.
    pub(crate) zero_based: bool,
}

impl Description {
    /// Describes memory of a process from `start` on.
    pub(super) const fn of_process(start: u64, zero_based: bool) -> Self {
        Self {
            mem_type: 0,
            region: [start, 0],
            zero_based,
        }
    }
}
