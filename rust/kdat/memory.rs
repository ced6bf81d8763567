// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of the consumer, registered as Local Memory Regions (LMRs).

use crate::{
    adapter::{
        Handle,
        Held, //
    },
    bindings,
    error::{
        to_result,
        Error,
        Result, //
    },
    pz::Pz, //
};
use core::{
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull,
    slice, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Allocated bytes.
///
/// # Invariants
///
/// `start`, `length` and `capacity` are the parts of a vector. No reference to its bytes is made
/// but by the owner of a [`Buffer`], to the bytes of that buffer.
struct Bytes {
    start: NonNull<u8>,
    length: usize,
    capacity: usize,
}

// SAFETY: The bytes belong to the value.
unsafe impl Send for Bytes {}
// SAFETY: A shared reference gives no access to the bytes, but their address.
unsafe impl Sync for Bytes {}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: By the type invariant these are the parts of a vector, which has no other owner.
        drop(unsafe { KVVec::from_raw_parts(self.start.as_ptr(), self.length, self.capacity) });
    }
}

/// Share of a registration in bytes, which are freed after the last one. An adapter can keep it.
struct Allocation {
    bytes: Arc<Bytes>,
    next: Option<KBox<dyn Held>>,
}

impl Allocation {
    fn zeroed(length: usize) -> Result<KBox<Self>> {
        let bytes = KVVec::from_elem(0_u8, length, GFP_KERNEL)?;
        let (start, length, capacity) = bytes.into_raw_parts();
        // INVARIANT: These are the parts of the vector.
        let bytes = Bytes {
            start: NonNull::new(start).ok_or(Error::MEMORY)?,
            length,
            capacity,
        };
        Self::of(Arc::new(bytes, GFP_KERNEL)?)
    }

    fn of(bytes: Arc<Bytes>) -> Result<KBox<Self>> {
        Ok(KBox::new(Self { bytes, next: None }, GFP_KERNEL)?)
    }
}

impl Held for Allocation {
    fn next(&mut self) -> &mut Option<KBox<dyn Held>> {
        &mut self.next
    }
}

/// Registered memory. The device may access it until its drop has freed the LMR; while the adapter
/// is being closed, the adapter keeps it until then.
pub(crate) struct Region {
    pz: Pz,
    pub(crate) lmr: Handle,
    pub(crate) lmr_context: u32,
    pub(crate) rmr_context: u32,
    start: NonNull<u8>,
    length: usize,
    memory: Option<KBox<Allocation>>,
}

// SAFETY: The bytes belong to `memory`, which may be sent.
unsafe impl Send for Region {}
// SAFETY: The methods give no access to the bytes, but their address.
unsafe impl Sync for Region {}

impl Region {
    /// Allocates and registers memory: `dat_lmr_kcreate`.
    pub(crate) fn new(pz: &Pz, length: usize, privileges: u32) -> Result<Arc<Self>> {
        Self::over(pz, Allocation::zeroed(length)?, length, privileges)
    }

    /// Registers the memory in another zone, too. Its bytes are freed after both LMRs.
    pub(crate) fn again(&self, pz: &Pz, privileges: u32) -> Result<Arc<Self>> {
        // It is taken by the drop only.
        let memory = self.memory.as_ref().ok_or(Error::MEMORY)?;
        let memory = Allocation::of(memory.bytes.clone())?;
        Self::over(pz, memory, self.length, privileges)
    }

    fn over(
        pz: &Pz,
        memory: KBox<Allocation>,
        length: usize,
        privileges: u32,
    ) -> Result<Arc<Self>> {
        let mut region = Self {
            pz: pz.clone(),
            lmr: Handle::NULL,
            lmr_context: 0,
            rmr_context: 0,
            start: memory.bytes.start,
            length,
            memory: Some(memory),
        };
        region.register(privileges)?;
        Ok(Arc::new(region, GFP_KERNEL)?)
    }

    fn register(&mut self, privileges: u32) -> Result {
        let description = bindings::DAT_REGION_DESCRIPTION {
            for_va: self.start.as_ptr().cast(),
        };
        let (zone, mut lmr) = (&self.pz.0, core::ptr::null_mut());
        // SAFETY: The region is memory of this value, which keeps it until the LMR was freed. The
        // output pointers are valid for writes, or NULL where the header allows it.
        let ret = unsafe {
            bindings::dat_lmr_kcreate(
                zone.adapter.ia.raw(),
                bindings::DAT_MEM_TYPE_VIRTUAL,
                description,
                self.length as u64,
                zone.handle.raw(),
                privileges,
                bindings::DAT_VA_TYPE_VA,
                bindings::DAT_MEM_OPTIMIZE_DONT_CARE,
                &raw mut lmr,
                &raw mut self.lmr_context,
                &raw mut self.rmr_context,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            )
        };
        to_result(ret)?;
        self.lmr = Handle::from_raw(lmr);
        Ok(())
    }

    /// Returns the address of a byte, for reads and writes through this pointer only.
    ///
    /// # Panics
    ///
    /// Never: an `offset` beyond the end gives the end.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: The result is within the allocation, or one byte past its end.
        unsafe { self.start.add(offset.min(self.length)) }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns whether the pages of the memory may not be contiguous.
    pub(crate) fn is_scattered(&self) -> bool {
        // SAFETY: The call only compares the address.
        unsafe { kernel::bindings::is_vmalloc_addr(self.start.as_ptr().cast()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else {
            return;
        };
        // SAFETY: The call has no pointers.
        let freed = unsafe { bindings::dat_lmr_free(self.lmr.raw()) };
        // On an error the adapter is closed or being closed, or a bind is not over.
        if self.lmr != Handle::NULL {
            self.pz.0.adapter.drop_memory(freed, memory);
        }
    }
}

/// Memory for DTOs: bytes that its owner reads and writes as a slice. A post takes the buffer, and
/// the event of the DTO returns it.
///
/// # Invariants
///
/// `start` and `size` are a part of `region`, which no other buffer has. The region has no remote
/// privileges, and no RMR is bound to it.
pub struct Buffer {
    region: Arc<Region>,
    start: NonNull<u8>,
    size: usize,
    /// Number of bytes that a DTO uses.
    used: usize,
}

// SAFETY: The bytes belong to the buffer.
unsafe impl Send for Buffer {}
// SAFETY: A shared buffer gives shared access to its bytes.
unsafe impl Sync for Buffer {}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: By the type invariant the bytes belong to this buffer. No DTO has them: it would
        // own the buffer.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: As above. The borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.size) }
    }
}

impl Buffer {
    /// Sets the number of bytes that a DTO uses, for [`Dto::with_all`](crate::Dto::with_all).
    pub fn using(mut self, length: usize) -> Self {
        self.used = length;
        self
    }

    /// Returns the segment that a DTO uses.
    ///
    /// # Errors
    ///
    /// LENGTH_ERROR if the buffer is shorter.
    pub(crate) fn segment(&self) -> Result<bindings::DAT_LMR_TRIPLET> {
        let too_long = Error::new(bindings::DAT_LENGTH_ERROR, 0);
        if self.used > self.size {
            return Err(too_long);
        }
        Ok(bindings::DAT_LMR_TRIPLET {
            virtual_address: self.start.addr().get() as u64,
            segment_length: u32::try_from(self.used).map_err(|_| too_long)?,
            lmr_context: self.region.lmr_context,
        })
    }
}

/// Local privileges of buffers.
pub(crate) const LOCAL: u32 =
    bindings::DAT_MEM_PRIV_LOCAL_READ_FLAG | bindings::DAT_MEM_PRIV_LOCAL_WRITE_FLAG;

pub(crate) fn buffers(pz: &Pz, number: usize, size: usize) -> Result<KVec<Buffer>> {
    let length = number.checked_mul(size).ok_or(Error::MEMORY)?;
    let mut buffers = KVec::with_capacity(number, GFP_KERNEL)?;
    let region = Region::new(pz, length, LOCAL)?;
    for index in 0..number {
        // INVARIANT: The parts are disjoint, and all within the region.
        let buffer = Buffer {
            region: region.clone(),
            start: region.at(index * size),
            size,
            used: 0,
        };
        buffers
            .push_within_capacity(buffer)
            .map_err(|_| Error::MEMORY)?;
    }
    Ok(buffers)
}

pub(crate) fn buffer(pz: &Pz, size: usize) -> Result<Buffer> {
    let region = Region::new(pz, size, LOCAL)?;
    // INVARIANT: The buffer has all of the region.
    Ok(Buffer {
        start: region.at(0),
        region,
        size,
        used: 0,
    })
}
