// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State of an open file: one Interface Adapter (IA).

use super::promises::Promises;
use crate::{
    dat::{
        base::Until,
        ep::Ep,
        evd::Evd,
        ia::{
            Ia,
            Opener,
            Tabled, //
        },
        prelude::*, //
    },
    model::ep::Close,
    sys::{
        mapped_memory::Area,
        net::NetRef,
        task::is_kernel_thread,
        uring::Registry,
        user::FixedCharge,
        workqueue::release_queue, //
    },
};
use kdapl_bindings::{
    KDAPL_MAP_AREA_SHIFT as MAP_AREA_SHIFT,
    KDAPL_MAP_EVD_SHIFT as MAP_EVD_SHIFT,
    KDAPL_MAP_IS_EP as MAP_IS_EP, //
};
use kernel::{
    impl_has_work,
    mm::virt::VmaNew,
    new_mutex, new_work,
    page::PAGE_SIZE,
    sync::Mutex,
    workqueue::{
        Work,
        WorkItem, //
    },
};

/// State of an open file of `/dev/kdapl`.
#[pin_data]
pub(super) struct Client {
    /// IA of the file. `None` before `KDAPL_IA_OPEN` and after `KDAPL_IA_CLOSE`.
    #[pin]
    ia: Mutex<Option<Arc<Ia>>>,
    /// Commands of io_uring that wait.
    commands: Arc<Registry>,
    /// Promises to post the DTOs that processes map.
    promises: Arc<Promises>,
    #[pin]
    release: Work<Client>,
}

impl_has_work! {
    impl HasWork<Self> for Client { self.release }
}

impl WorkItem for Client {
    type Pointer = Arc<Self>;

    /// Closes the IA of a file that was released.
    fn run(this: Arc<Self>) {
        this.close_released();
    }
}

impl Client {
    /// Makes the state of a newly opened file.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<impl PinInit<Self>> {
        let (commands, promises) = (Registry::new()?, Promises::new()?);
        Ok(pin_init!(Self {
            ia <- new_mutex!(None, "Client::ia"),
            commands,
            promises,
            release <- new_work!("Client::release"),
        }))
    }

    /// Handles the release of the file: no operation on it is running or follows.
    ///
    /// The thread that closes the last descriptor closes the IA, which takes time in proportion to
    /// the number of its objects. In two cases a work item of the module closes it instead. The
    /// thread may belong to another user, to which the descriptor was passed over a socket. Or it
    /// is a kernel worker that all users share, which drops the last reference of an io_uring
    /// command or of a message in a socket.
    ///
    /// Context: process; sleeps.
    pub(super) fn release(this: Arc<Self>) {
        let ia = this.ia.lock().clone();
        if !is_kernel_thread() && ia.is_none_or(|ia| ia.is_of_calling_user()) {
            return this.close_released();
        }
        // A file is released once, so the item is not in the queue.
        if let Err(this) = release_queue().enqueue(this) {
            this.close_released();
        }
    }

    fn close_released(&self) {
        // The error means that no IA is open.
        let _ = self.close(Close::Abrupt, Until::Done);
    }

    /// Returns the commands of io_uring that wait.
    pub(super) fn commands(&self) -> &Arc<Registry> {
        &self.commands
    }

    /// Returns the promises to post mapped DTOs.
    pub(super) fn promises(&self) -> &Arc<Promises> {
        &self.promises
    }

    /// Returns the IA of the file.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE (IA) if the file has no open IA.
    pub(super) fn ia(&self) -> DatResult<Arc<Ia>> {
        self.ia.lock().clone().ok_or(Self::without_ia())
    }

    /// Charges one object with this many kilobytes to the user that has opened the IA of the file.
    ///
    /// # Errors
    ///
    /// `EAGAIN` above the user's limits, `ENODEV` if the IA was closed meanwhile.
    pub(super) fn hold_object(&self, kilobytes: u32) -> Result<[FixedCharge; 2]> {
        let ia = self.ia.lock().clone();
        ia.ok_or(ENODEV)?.hold_object(kilobytes)
    }

    /// Returns the object with this handle. The lock keeps the IA meanwhile, which is cheaper than
    /// a reference.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE: (IA) if the file has no open IA, or with the subtype of the kind.
    pub(super) fn get<T: Tabled>(&self, handle: u64) -> DatResult<Arc<T>> {
        let ia = self.ia.lock();
        ia.as_ref().ok_or(Self::without_ia())?.get(handle)
    }

    fn without_ia() -> DatError {
        DatError::new(Kind::InvalidHandle, Subtype::InvalidHandleIa)
    }

    /// Maps an area of an EVD's events or of an Endpoint's posts into a process. `page` is the
    /// offset in the file, in pages, which [`KDAPL_MAP_OFFSET`](kdapl_bindings) or
    /// `KDAPL_MAP_POSTS_OFFSET` composes.
    ///
    /// # Errors
    ///
    /// `ENXIO` if the offset names no such object of the file's IA; as for `Evd::map` and
    /// `Ep::map_posts`.
    pub(super) fn map(&self, page: usize, vma: &VmaNew) -> Result {
        let offset = u64::try_from(page)
            .ok()
            .and_then(|page| page.checked_mul(PAGE_SIZE as u64))
            .ok_or(ENXIO)?;
        if offset % (1 << MAP_AREA_SHIFT) != 0 {
            return Err(ENXIO);
        }
        let ia = self.ia().map_err(|_| ENXIO)?;
        let is_second = (offset >> MAP_AREA_SHIFT) & 1 != 0;
        if offset & MAP_IS_EP == 0 {
            let area = if is_second { Area::Index } else { Area::Events };
            let evd = ia.get_by_low_bits::<Evd>(offset >> MAP_EVD_SHIFT);
            evd.ok_or(ENXIO)?.map(area, vma)
        } else {
            let area = if is_second {
                Area::Posts
            } else {
                Area::Promise
            };
            let low_bits = (offset & !MAP_IS_EP) >> MAP_EVD_SHIFT;
            let ep = ia.get_by_low_bits::<Ep>(low_bits);
            ep.ok_or(ENXIO)?.map_posts(area, vma)
        }
    }

    /// Opens the IA of the file.
    ///
    /// # Errors
    ///
    /// INVALID_STATE if the file already has one; otherwise those of [`Ia::open`].
    pub(super) fn open(&self, name: &[u8], async_evd_qlen: i32) -> DatResult<Arc<Ia>> {
        let in_use = DatError::new(Kind::InvalidState, Subtype::InvalidStateIaInUse);
        if self.ia.lock().is_some() {
            return Err(in_use);
        }
        let ia = Ia::open(Opener::Process, name, async_evd_qlen, NetRef::current()?)?;
        let lost_race = {
            let mut slot = self.ia.lock();
            match &*slot {
                Some(_) => true,
                None => {
                    *slot = Some(ia.clone());
                    false
                }
            }
        };
        if lost_race {
            ia.close(Close::Abrupt, Until::Done)?;
            return Err(in_use);
        }
        Ok(ia)
    }

    /// Closes the IA of the file.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE (IA) if the file has no open IA; otherwise those of [`Ia::close`].
    pub(super) fn close(&self, close: Close, until: Until) -> DatResult {
        let ia = self.ia()?;
        ia.close(close, until)?;
        // They would keep the Endpoints. No more follow: the Endpoints are freed, and the file can
        // have no other IA yet.
        self.promises.end();
        let mut slot = self.ia.lock();
        let closed = slot.take_if(|open| Arc::ptr_eq(open, &ia));
        drop(slot);
        drop(closed);
        Ok(())
    }
}
