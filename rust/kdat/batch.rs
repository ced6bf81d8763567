// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Data transfer operations (DTOs) that one call posts, in their C form, on the stack.

use crate::{
    adapter::Handle,
    bindings,
    dto::MAX_SEGMENTS,
    error::{
        to_result,
        Result, //
    }, //
};

/// Number of DTOs that kDAPL gives to the device at once.
const CHAIN: usize = 8;

/// Number of segments, which is at least that of the longest DTO.
const SEGMENTS: usize = 2 * MAX_SEGMENTS;

/// DTOs that are posted by one call.
#[derive(Default)]
pub(crate) struct Batch {
    list: [bindings::DAT_LIST_DTO; CHAIN],
    number: usize,
    local: [bindings::DAT_LMR_TRIPLET; SEGMENTS],
    used: usize,
}

impl Batch {
    /// Returns whether another DTO of so many segments can be added.
    pub(crate) fn has_room(&self, segments: usize) -> bool {
        self.number < CHAIN && segments <= SEGMENTS - self.used
    }

    /// Adds a DTO, and copies its segments. Has no effect without room.
    pub(crate) fn push(
        &mut self,
        dto: bindings::DAT_LIST_DTO,
        segments: &[bindings::DAT_LMR_TRIPLET],
    ) {
        let end = self.used + segments.len();
        let local = self.local.get_mut(self.used..end);
        let (Some(slot), Some(local)) = (self.list.get_mut(self.number), local) else {
            return;
        };
        local.copy_from_slice(segments);
        *slot = bindings::DAT_LIST_DTO {
            segments: segments.len() as i32,
            local: core::ptr::null(),
            ..dto
        };
        self.used = end;
        self.number += 1;
    }

    /// Returns the DTOs.
    pub(crate) fn dtos(&self) -> &[bindings::DAT_LIST_DTO] {
        self.list.get(..self.number).unwrap_or_default()
    }

    /// Posts the DTOs, up to the first that is refused. Returns how many were posted.
    pub(crate) fn post(&mut self, ep: Handle) -> (usize, Result) {
        if self.number == 0 {
            return (0, Ok(()));
        }
        let mut local = self.local.as_slice();
        for dto in self.list.iter_mut().take(self.number) {
            dto.local = local.as_ptr();
            local = local.get(dto.segments as usize..).unwrap_or_default();
        }
        let mut posted = 0;
        // SAFETY: The list has `number` DTOs, which are valid for reads during the call with their
        // segments. Their memory belongs to the table of the adapter until the events of the DTOs,
        // or until the Endpoint was freed.
        let ret = unsafe {
            let count = self.number as i32;
            bindings::kdapl_ep_post_list(ep.raw(), count, self.list.as_ptr(), &raw mut posted)
        };
        (usize::try_from(posted).unwrap_or(0), to_result(ret))
    }
}
