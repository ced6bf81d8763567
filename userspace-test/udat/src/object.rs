// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Types of objects, and the resolution of handles.

use crate::abi::*;
use crate::cell::{self, Cell};
use crate::cno::Cno;
use crate::cr::Cr;
use crate::ep::Ep;
use crate::evd::Evd;
use crate::ia::Ia;
use crate::lmr::Lmr;
use crate::pz::Pz;
use crate::ret::{Result, Ret};
use crate::rmr::Rmr;
use crate::service::{Csp, Psp, Rsp};
use crate::srq::Srq;
use libkdapl::Subtype;
use std::sync::Arc;

/// A type of object.
pub trait Noun: Sized {
    /// Subtype of `DAT_INVALID_HANDLE` for a handle that has no such object.
    const WHICH: Subtype;

    fn of(object: &Object) -> Option<&Arc<Self>>;
    fn wrap(this: Arc<Self>) -> Object;
}

macro_rules! nouns {
    ($($noun:ident = $which:ident, $type:ident;)*) => {
        /// An object of any type.
        #[derive(Clone)]
        pub enum Object {
            $($noun(Arc<$noun>),)*
        }

        impl Object {
            /// `DAT_HANDLE_TYPE`.
            pub fn handle_type(&self) -> DAT_HANDLE_TYPE {
                match self {
                    $(Self::$noun(_) => $type,)*
                }
            }
        }

        $(impl Noun for $noun {
            const WHICH: Subtype = Subtype::$which;

            fn of(object: &Object) -> Option<&Arc<Self>> {
                match object {
                    Object::$noun(noun) => Some(noun),
                    _ => None,
                }
            }

            fn wrap(this: Arc<Self>) -> Object {
                Object::$noun(this)
            }
        })*
    };
}

nouns! {
    Ia = INVALID_HANDLE_IA, DAT_HANDLE_TYPE_IA;
    Pz = INVALID_HANDLE_PZ, DAT_HANDLE_TYPE_PZ;
    Evd = INVALID_HANDLE_EVD_REQUEST, DAT_HANDLE_TYPE_EVD;
    Cno = INVALID_HANDLE_CNO, DAT_HANDLE_TYPE_CNO;
    Ep = INVALID_HANDLE_EP, DAT_HANDLE_TYPE_EP;
    Cr = INVALID_HANDLE_CR, DAT_HANDLE_TYPE_CR;
    Psp = INVALID_HANDLE_PSP, DAT_HANDLE_TYPE_PSP;
    Rsp = INVALID_HANDLE_RSP, DAT_HANDLE_TYPE_RSP;
    Csp = INVALID_HANDLE_CSP, DAT_HANDLE_TYPE_CSP;
    Lmr = INVALID_HANDLE_LMR, DAT_HANDLE_TYPE_LMR;
    Rmr = INVALID_HANDLE_RMR, DAT_HANDLE_TYPE_RMR;
    Srq = INVALID_HANDLE_SRQ, DAT_HANDLE_TYPE_SRQ;
}

/// Returns the object of a handle.
pub fn find<T: Noun>(handle: DAT_HANDLE) -> Result<Arc<T>> {
    find_as(handle, T::WHICH)
}

/// Like [`find`], with another subtype for the error.
pub fn find_as<T: Noun>(handle: DAT_HANDLE, which: Subtype) -> Result<Arc<T>> {
    cell::find(handle).and_then(Cell::get).ok_or(Ret::handle(which))
}

/// Like [`find_as`], but returns `None` for `DAT_HANDLE_NULL`.
pub fn find_or_null<T: Noun>(handle: DAT_HANDLE, which: Subtype) -> Result<Option<Arc<T>>> {
    if handle.is_null() {
        return Ok(None);
    }
    find_as(handle, which).map(Some)
}
