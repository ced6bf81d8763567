// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DAT calls that take handles of several objects: they resolve the handles, then make the call.

use super::{
    Cno,
    Ep,
    Evd,
    Ia,
    Lmr,
    Pz,
    Rmr,
    Srq, //
};
use crate::{
    dat::{
        base::{
            InUse,
            Segment, //
        },
        cno::Agent,
        ep::{
            self,
            EpAttr,
            EpChange,
            Handles, //
        },
        evd::{
            self,
            EvdFile,
            Flags, //
        },
        lmr,
        prelude::*,
        pz::{
            add_segments,
            Sharing, //
        },
        rmr::BindArguments,
        srq::SrqAttr, //
    },
    rdma::{
        kernel_memory::KernelMemory,
        pd::Pd, //
    },
    sys::record_file::PendingFile,
};

/// Resolves a handle; `None` for 0, which is DAT_HANDLE_NULL.
pub(super) fn given<T>(
    handle: u64,
    find: impl FnOnce(u64) -> DatResult<T>,
) -> DatResult<Option<T>> {
    (handle != 0).then(|| find(handle)).transpose()
}

/// Protection Zones and memory.
impl Ia {
    /// Implements `dat_pz_create`. Returns the handle. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES.
    pub(crate) fn create_pz(&self) -> DatResult<u64> {
        Pz::create(&self.base, &self.pzs)
    }

    /// Implements `dat_srq_resize`: [`Srq::resize`].
    ///
    /// # Errors
    ///
    /// Errors of [`Srq::resize`].
    pub(crate) fn resize_srq(&self, srq: &Arc<Srq>, max_recv_dtos: u32) -> DatResult {
        srq.resize(max_recv_dtos, |longer| {
            let mut result = Ok(());
            self.eps().for_each(|ep| {
                if result.is_ok() {
                    result = ep.lengthen_held(srq.handle(), longer);
                }
            });
            result
        })
    }

    pub(super) fn use_pz(&self, pz: u64) -> DatResult<InUse<Pz>> {
        self.pzs.use_as(pz, Subtype::InvalidHandlePz)
    }

    /// Implements `dat_lmr_create` for memory of the calling process: [`Lmr::create`].
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE (PZ).
    /// - Errors of [`Lmr::create`].
    pub(crate) fn create_lmr(
        &self,
        pz: u64,
        arguments: &lmr::ProcessArguments,
    ) -> DatResult<(u64, lmr::Param)> {
        let pz = self.use_pz(pz)?;
        Lmr::create(&self.base, &self.lmrs, pz, arguments)
    }

    /// Implements `dat_ia_memtype_hint`.
    ///
    /// # Errors
    ///
    /// LENGTH_ERROR if the length is 0, or overflows when it is rounded up to whole pages.
    pub(crate) fn memory_hint(&self, length: u64) -> DatResult<lmr::Hint> {
        lmr::hint(self.attr(), length)
    }

    /// Implements `dat_lmr_sync_rdma_read` and `dat_lmr_sync_rdma_write`: checks that each segment
    /// is a part of an LMR. Nothing else is necessary: the memory of an LMR is shared by the
    /// processors and the device. Only a [registration by a request](lmr::FastLmr) accepts other
    /// memory, which is copied with the registration and the invalidation.
    ///
    /// A context names an LMR of one PZ, and may name another one in another PZ.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (segments); MODEL_NOT_SUPPORTED if the device may have a copy.
    pub(crate) fn check_segments(&self, segments: &[Segment]) -> DatResult {
        let checked = add_segments(segments, |segment| {
            let mut found = None;
            self.pzs
                .for_each(|pz| found = found.or_else(|| pz.find(segment)));
            match found.ok_or(DatError::Invalid(Arg::Segments))? {
                Sharing::Shared => Ok(()),
                Sharing::MayBeCopied => Err(Kind::ModelNotSupported.into()),
            }
        });
        checked.map(|_| ())
    }

    /// Implements `dat_lmr_kcreate`: [`Lmr::create_of_kernel`].
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE (PZ).
    /// - Errors of [`Lmr::create_of_kernel`].
    pub(crate) fn create_kernel_lmr(
        &self,
        pz: u64,
        arguments: &lmr::KernelArguments,
        map: impl FnOnce(Arc<Pd>) -> Result<KernelMemory>,
    ) -> DatResult<(u64, lmr::Param)> {
        let pz = self.use_pz(pz)?;
        let map = |pd| map(pd).map_err(lmr::registration_error);
        Lmr::create_of_kernel(&self.base, &self.lmrs, pz, arguments, map)
    }

    /// Implements `dat_lmr_kcreate` for the memory of another LMR, which may be freed before:
    /// [`Lmr::create_of_kernel`].
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE (PZ or LMR).
    /// - LENGTH_ERROR if the length is above that of the other LMR.
    /// - Errors of [`Lmr::create_of_kernel`].
    pub(crate) fn create_lmr_of_lmr(
        &self,
        pz: u64,
        other: u64,
        arguments: &lmr::KernelArguments,
    ) -> DatResult<(u64, lmr::Param)> {
        let pz = self.use_pz(pz)?;
        let other = self.get::<Lmr>(other)?;
        if arguments.length > other.query().length {
            return Err(Kind::LengthError.into());
        }
        let map = |pd| {
            other
                .kernel_memory(pd)?
                .ok_or(Kind::ModelNotSupported.into())
        };
        Lmr::create_of_kernel(&self.base, &self.lmrs, pz, arguments, map)
    }
}

/// Remote Memory Regions.
impl Ia {
    /// Implements `dat_rmr_create`: [`Rmr::create`].
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE (PZ).
    /// - Errors of [`Rmr::create`].
    pub(crate) fn create_rmr(&self, pz: u64) -> DatResult<u64> {
        Rmr::create(&self.rmrs, self.use_pz(pz)?)
    }

    /// Implements `dat_rmr_bind`: [`Rmr::bind`]. An unbind ignores the LMR.
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE (RMR, LMR or Endpoint).
    /// - Errors of [`Rmr::bind`].
    pub(crate) fn bind_rmr(
        &self,
        rmr: u64,
        lmr: u64,
        ep: u64,
        arguments: &BindArguments,
    ) -> DatResult<u32> {
        let rmr = self.get::<Rmr>(rmr)?;
        let ep = self.get::<Ep>(ep)?;
        let lmr = || self.lmrs.use_as(lmr, Subtype::InvalidHandleLmr);
        rmr.bind(lmr, ep, arguments)
    }
}

/// Events.
impl Ia {
    /// Implements `dat_cno_create`. `agent` is signalled with each trigger. Returns the handle.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES.
    pub(crate) fn create_cno(&self, agent: Option<Agent>) -> DatResult<u64> {
        Cno::create(&self.cnos, self.evds().clone(), agent)
    }

    fn use_cno(&self, cno: u64) -> DatResult<Option<InUse<Cno>>> {
        given(cno, |cno| self.cnos.use_as(cno, Subtype::InvalidHandleCno))
    }

    /// Opens a file of an EVD for the calling process: [`EvdFile::open`]. A record that is read has
    /// `record_size` bytes.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// Errors of [`EvdFile::open`].
    pub(crate) fn open_evd_file(&self, evd: u64, record_size: usize) -> DatResult<PendingFile> {
        EvdFile::open(self.evds(), evd, record_size)
    }

    /// Implements `dat_evd_create`. A `vector` of -1 leaves the completion vector to the adapter.
    /// Returns the handle and the queue length.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_PARAMETER (queue length) below 1 or above the adapter's maximum.
    /// - INVALID_PARAMETER (flags) for unknown or no streams.
    /// - INVALID_PARAMETER (completion vector) for one that the device does not have.
    /// - INVALID_HANDLE (CNO). A CNO of 0 is DAT_HANDLE_NULL.
    pub(crate) fn create_evd(
        &self,
        qlen: i32,
        cno: u64,
        flags: u32,
        vector: i32,
    ) -> DatResult<(u64, u32)> {
        self.create_evd_with(qlen, cno, flags, vector, evd::UpcallContext::Process)
    }

    /// As [`Ia::create_evd`], for upcalls in this context. Only an adapter of a kernel consumer has
    /// upcalls.
    ///
    /// # Errors
    ///
    /// As for [`Ia::create_evd`].
    pub(crate) fn create_evd_with(
        &self,
        qlen: i32,
        cno: u64,
        flags: u32,
        vector: i32,
        upcalls: evd::UpcallContext,
    ) -> DatResult<(u64, u32)> {
        let flags = Flags::from_bits(flags).ok_or(DatError::Invalid(Arg::Flags))?;
        let qlen = evd::queue_length(qlen, self.attr().max_evd_qlen)?;
        let device = self.base.device()?;
        let placement = evd::placement(vector, &device)?;
        let cno = self.use_cno(cno)?;
        let config = evd::Config {
            device: &device,
            context: self.passive.ep_context.evd_context.clone(),
            qlen,
            flags,
            placement,
            upcalls,
        };
        let evd = Evd::create(self.evds(), config)?;
        if let Err(error) = evd.modify_cno(cno) {
            self.free::<Evd>(evd.handle())?;
            return Err(error);
        }
        Ok((evd.handle(), qlen))
    }

    /// Implements `dat_evd_modify_cno`. A CNO of 0 is DAT_HANDLE_NULL.
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE (CNO).
    /// - Errors of [`Evd::modify_cno`].
    pub(crate) fn modify_cno(&self, evd: &Arc<Evd>, cno: u64) -> DatResult {
        evd.modify_cno(self.use_cno(cno)?)
    }

    /// Begins the use of an EVD that takes the stream `stream`.
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE with this subtype.
    /// - INVALID_PARAMETER (`arg`) for an EVD that does not take the stream.
    pub(super) fn use_evd(
        &self,
        evd: u64,
        stream: Flags,
        subtype: Subtype,
        arg: Arg,
    ) -> DatResult<InUse<Evd>> {
        let evd = self.evds().use_as(evd, subtype)?;
        if !evd.flags().has(stream) {
            return Err(DatError::Invalid(arg));
        }
        Ok(evd)
    }
}

/// Shared Receive Queues.
impl Ia {
    /// Implements `dat_srq_create`: [`Srq::create`]. Returns the handle.
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE (PZ).
    /// - Errors of [`Srq::create`].
    pub(crate) fn create_srq(&self, pz: u64, attr: SrqAttr) -> DatResult<u64> {
        let pz = self.use_pz(pz)?;
        let async_evd = &self.passive.ep_context.async_evd;
        Srq::create(&self.base, async_evd, self.srqs(), pz, attr)
    }
}

/// Endpoints.
impl Ia {
    /// Implements `dat_ep_create`: [`Ep::create`]. A handle of 0 in `handles` is DAT_HANDLE_NULL.
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE with the subtype of the invalid handle.
    /// - INVALID_PARAMETER for an EVD that does not take the stream.
    /// - Errors of [`Ep::create`].
    pub(crate) fn create_ep(
        &self,
        handles: &Handles,
        attr: Option<EpAttr>,
    ) -> DatResult<(u64, EpAttr)> {
        Ep::create(
            &self.passive.ep_context,
            self.use_parts(handles, ep::PARTS)?,
            attr,
        )
    }

    /// Implements `dat_ep_modify`: [`Ep::modify`].
    ///
    /// # Errors
    ///
    /// - Errors of [`Ia::create_ep`] for handles.
    /// - Errors of [`Ep::modify`].
    pub(crate) fn modify_ep(&self, ep: &Arc<Ep>, change: &EpChange) -> DatResult<EpAttr> {
        ep.modify(change, self.use_parts(&change.handles, change.parts)?)
    }
}
