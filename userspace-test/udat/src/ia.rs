// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Interface Adapters (IAs).

pub mod attr;

use crate::abi::*;
use crate::cell::{self, Cell};
use crate::entry::entry;
use crate::evd::Evd;
use crate::foreign::{self, put, Lent, Named};
use crate::object::{self, Noun, Object};
use crate::origin::Origin;
use crate::ret::{Result, Ret};
use libkdapl::sys::kdapl_sockaddr;
use libkdapl::{Close, DatError, DeviceInfo, Error, Handle, IaQuery, PortInfo, Subtype, Type};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// `DAT_EVD_ASYNC_EXISTS`: the program does not want the IA's asynchronous EVD.
const ASYNC_EXISTS: usize = 1;
/// `DAT_EVD_OUT_OF_SCOPE`: the asynchronous EVD of such an IA in a query.
const OUT_OF_SCOPE: usize = 2;

/// Hash function for keys that cannot be chosen by an attacker. Each event needs a look-up.
#[derive(Default)]
struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, word: u64) {
        // Fibonacci hashing: the multiplication leaves the better bits in the upper half. The
        // rotation makes them part of both ends, which the map uses.
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type Cells = HashMap<u64, &'static Cell, BuildHasherDefault<Fold>>;

/// Qualifiers of the program that differ from the ports which the kernel listens at, by port.
pub type Folded = HashMap<u64, DAT_CONN_QUAL>;

/// An open IA.
pub struct Ia {
    pub cell: &'static Cell,
    pub dat: libkdapl::Ia,
    pub origin: Origin,
    limits: IaQuery,
    address: Lent<kdapl_sockaddr>,
    attributes: Named,
    /// The program's handle of the IA, once it was needed.
    number: OnceLock<usize>,
    async_evd: OnceLock<usize>,
    /// Cell of each object by the kernel's handle, or by the cell's address for an object that the
    /// kernel does not have. (The uppermost bits of the kernel's handles are set, those of an
    /// address never are.) `None` after the close.
    cells: Mutex<Option<Cells>>,
    folded: Mutex<Folded>,
}

impl Ia {
    fn open(origin: Origin, async_qlen: i32) -> Result<Arc<Self>> {
        let opened = device_of(&origin).and_then(|device| {
            let dat = libkdapl::Ia::open(&device, async_qlen)?;
            Ok((dat.query()?, dat))
        });
        let (limits, dat) = opened.inspect_err(|error| print_cause(&origin, error))?;
        let address = Lent::new(limits.raw.address);
        let attributes = attr::named(&limits);
        cell::make(origin.first_word, |cell| {
            let (number, async_evd) = (OnceLock::new(), OnceLock::new());
            let cells = Mutex::new(Some(Cells::from_iter([(dat.handle().0, cell)])));
            let ia = Arc::new(Self {
                cell,
                dat,
                origin,
                limits,
                address,
                attributes,
                number,
                async_evd,
                cells,
                folded: Mutex::default(),
            });
            (Object::Ia(ia.clone()), ia)
        })
    }

    fn cells(&self) -> MutexGuard<'_, Option<Cells>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cell_of(&self, key: Handle) -> Option<&'static Cell> {
        self.cells().as_ref()?.get(&key.0).copied()
    }

    /// Locks the folded qualifiers. A call that creates a service point holds the lock until the
    /// service point has its handle, so that a request which arrives meanwhile finds it.
    pub fn folded(&self) -> MutexGuard<'_, Folded> {
        self.folded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the handle that the program uses for the IA.
    pub fn handle(&self) -> DAT_IA_HANDLE {
        let known =
            self.number.get_or_init(|| (self.origin.program_handle)(self.cell.handle()) as usize);
        *known as DAT_IA_HANDLE
    }

    /// Returns the address of the IA's IP address.
    pub fn address(&self) -> DAT_IA_ADDRESS_PTR {
        self.address.address().cast()
    }

    /// Creates a handle for an object of this IA; `key` is the kernel's handle.
    pub fn adopt<T: Noun>(
        &self,
        key: Handle,
        build: impl FnOnce(&'static Cell) -> T,
    ) -> Result<Arc<T>> {
        let (cell, object) = cell::make(self.origin.first_word, |cell| {
            let object = Arc::new(build(cell));
            (T::wrap(object.clone()), (cell, object))
        })?;
        let Some(_) = self.cells().as_mut().map(|cells| cells.insert(key.0, cell)) else {
            // The close, which another thread made meanwhile, has not seen the cell.
            cell::release(cell);
            return Err(Ret::handle(Subtype::INVALID_HANDLE_IA));
        };
        Ok(object)
    }

    /// Makes the handle of a freed object stale; `key` is the kernel's handle.
    pub fn forget(&self, key: Handle) {
        let cell = self.cells().as_mut().and_then(|cells| cells.remove(&key.0));
        cell.into_iter().for_each(cell::release);
    }

    /// Returns the program's handle for the kernel's handle `key`; null if the object was freed.
    pub fn handle_of(&self, key: Handle) -> DAT_HANDLE {
        if key == self.dat.handle() {
            return self.handle();
        }
        self.cell_of(key).map_or(std::ptr::null_mut(), Cell::handle)
    }

    /// Returns the object for the kernel's handle `key`.
    pub fn object_of<T: Noun>(&self, key: Handle) -> Option<Arc<T>> {
        self.cell_of(key)?.get()
    }

    /// Returns the objects of this IA, and the IA itself.
    pub fn objects(&self) -> impl Iterator<Item = Object> {
        let cells: Vec<_> = self.cells().iter().flatten().map(|(_, cell)| *cell).collect();
        cells.into_iter().filter_map(Cell::object)
    }

    fn close(&self, how: Close) -> Result<()> {
        let own = |object: &Object| matches!(object, Object::Rmr(_));
        if how == Close::Graceful && self.objects().any(|object| own(&object)) {
            return Err(Ret::new(Type::INVALID_STATE, Subtype::INVALID_STATE_IA_IN_USE));
        }
        if how == Close::Abrupt {
            for object in self.objects() {
                if let Object::Cno(cno) = object {
                    cno.end_agent();
                }
            }
        }
        self.dat.close(how)?;
        // Another thread may have created objects since.
        let cells = self.cells().take();
        cells.into_iter().flatten().for_each(|(_, cell)| cell::release(cell));
        Ok(())
    }
}

/// Returns the device that the options name, or the first device with an address.
fn device_of(origin: &Origin) -> libkdapl::Result<String> {
    if !origin.options.device.is_empty() {
        return Ok(origin.options.device.clone());
    }
    let devices = libkdapl::devices()?;
    let first = devices.into_iter().find(|device| device.address.is_some());
    let code = Type::PROVIDER_NOT_FOUND.code(Subtype::NAME_NOT_REGISTERED);
    let none = Error::Dat(DatError { call: "dat_ia_open", code });
    first.map(|device| device.name).ok_or(none)
}

/// Opens an IA (`dat_ia_open`). `origin` looks up the name that the program has passed.
pub fn open(
    origin: impl FnOnce() -> Result<Origin>,
    async_qlen: DAT_COUNT,
    async_evd: *mut DAT_EVD_HANDLE,
    ia_handle: *mut DAT_IA_HANDLE,
) -> Result<Arc<Ia>> {
    foreign::wanted(ia_handle, 4)?;
    let wish = foreign::get(async_evd, 3)? as usize;
    let origin = origin()?;
    let out_of_scope = match wish {
        0 => false,
        ASYNC_EXISTS => true,
        // Each IA has its own asynchronous EVD; it cannot use another one.
        _ => {
            object::find_as::<Evd>(wish as DAT_HANDLE, Subtype::INVALID_HANDLE_EVD_ASYNC)?;
            return Err(Ret::UNSUPPORTED);
        }
    };
    let ia = Ia::open(origin, async_qlen)?;
    let evd = if out_of_scope {
        OUT_OF_SCOPE
    } else {
        let evd = Evd::adopt(&ia, ia.dat.async_evd().clone());
        let evd = evd.inspect_err(|_| {
            let _ = ia.close(Close::Abrupt);
        });
        evd?.cell.handle() as usize
    };
    // Cannot fail: no other thread has the IA yet.
    let _ = ia.async_evd.set(evd);
    foreign::put_if(async_evd, evd as DAT_EVD_HANDLE);
    put(ia_handle, 4, ia.cell.handle())?;
    Ok(ia)
}

/// Returns the ports of a device, each with its addresses.
fn places(device: &DeviceInfo) -> Vec<String> {
    let written = |port: &PortInfo| {
        let addresses: Vec<_> = port.addresses.iter().map(ToString::to_string).collect();
        format!("{}/{} ({})", device.name, port.number, addresses.join(" "))
    };
    match device.ports.is_empty() {
        true => vec![device.name.clone()],
        false => device.ports.iter().map(written).collect(),
    }
}

/// Prints the cause of a failed open to the standard error output, because programs print only the
/// code. For an unknown device that includes the known ones.
fn print_cause(origin: &Origin, error: &Error) {
    let (name, device) = (&origin.name, &origin.options.device);
    if error.kind() != Some(Type::PROVIDER_NOT_FOUND) {
        return eprintln!("kdapl: {name}: {error}");
    }
    match libkdapl::devices() {
        Err(error) => eprintln!("kdapl: {name}: {error}"),
        Ok(devices) if devices.is_empty() => eprintln!("kdapl: {name}: there is no RDMA device"),
        Ok(devices) => {
            let found: Vec<_> = devices.iter().flat_map(places).collect();
            eprintln!("kdapl: {name}: '{device}' not found; there are: {}", found.join(", "));
        }
    }
}

pub extern "C" fn query(
    ia: DAT_IA_HANDLE,
    async_evd: *mut DAT_EVD_HANDLE,
    ia_mask: DAT_IA_ATTR_MASK,
    ia_attr: *mut DAT_IA_ATTR,
    provider_mask: DAT_PROVIDER_ATTR_MASK,
    provider_attr: *mut DAT_PROVIDER_ATTR,
) -> DAT_RETURN {
    entry(|| {
        let ia = object::find::<Ia>(ia)?;
        if ia_mask & !attr::IA_FIELDS != 0 {
            return Err(Ret::argument(3));
        }
        if provider_mask & !attr::PROVIDER_FIELDS != 0 {
            return Err(Ret::argument(5));
        }
        if ia_mask != 0 {
            put(ia_attr, 4, attr::ia(&ia))?;
        }
        if provider_mask != 0 {
            put(provider_attr, 6, attr::provider(&ia))?;
        }
        let evd = ia.async_evd.get().copied().unwrap_or(OUT_OF_SCOPE);
        foreign::put_if(async_evd, evd as DAT_EVD_HANDLE);
        Ok(())
    })
}

pub extern "C" fn close(ia: DAT_IA_HANDLE, flags: DAT_CLOSE_FLAGS) -> DAT_RETURN {
    entry(|| {
        let ia = object::find::<Ia>(ia)?;
        ia.close(match flags {
            DAT_CLOSE_ABRUPT_FLAG => Close::Abrupt,
            DAT_CLOSE_GRACEFUL_FLAG => Close::Graceful,
            _ => return Err(Ret::argument(2)),
        })
    })
}

/// `dat_ia_ha_related`. Related adapters would require devices with several paths. `is_known`
/// returns whether there is an adapter with a name.
pub fn ha_related(
    ia: DAT_IA_HANDLE,
    name: DAT_NAME_PTR,
    answer: *mut DAT_BOOLEAN,
    is_known: impl FnOnce(&str) -> bool,
) -> Result<()> {
    object::find::<Ia>(ia)?;
    foreign::wanted(answer, 3)?;
    let name = foreign::text(name).ok_or(Ret::argument(2))?;
    if !is_known(&name) {
        return Err(Ret::new(Type::PROVIDER_NOT_FOUND, Subtype::NAME_NOT_REGISTERED));
    }
    Err(Ret::UNSUPPORTED)
}

/// Opens an IA for a query of its attributes (`dat_ib_open_query`).
pub fn open_query(
    origin: impl FnOnce() -> Result<Origin>,
    ia_handle: *mut DAT_IA_HANDLE,
) -> Result<Arc<Ia>> {
    foreign::wanted(ia_handle, 2)?;
    let mut async_evd = ASYNC_EXISTS as DAT_EVD_HANDLE;
    open(origin, 1, &mut async_evd, ia_handle)
}
