// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The kinds of objects that have handles.

use crate::{
    dat::{
        cno::Cno,
        cr::Cr,
        csp::Csp,
        ep::Ep,
        evd::Evd,
        lmr::Lmr,
        psp::Psp,
        pz::Pz,
        rsp::Rsp, //
    },
    model::{
        code::Subtype,
        handle::HandleKind, //
    },
};
use kernel::sync::Arc;

/// An object of any kind.
#[derive(Clone)]
pub(crate) enum Object {
    Pz(Arc<Pz>),
    Evd(Arc<Evd>),
    Ep(Arc<Ep>),
    Psp(Arc<Psp>),
    Rsp(Arc<Rsp>),
    Csp(Arc<Csp>),
    Cr(Arc<Cr>),
    Lmr(Arc<Lmr>),
    Cno(Arc<Cno>),
}

/// A kind of object.
pub(crate) trait Noun: Sized {
    /// What its handles say.
    const KIND: HandleKind;
    /// INVALID_HANDLE of this kind.
    const INVALID: Subtype;

    /// The object, if it is of this kind.
    fn of(object: &Object) -> Option<&Arc<Self>>;

    /// The object, its kind no longer known.
    fn forget(this: Arc<Self>) -> Object;
}

macro_rules! nouns {
    ($($name:ident: $invalid:ident),+ $(,)?) => {
        $(impl Noun for $name {
            const KIND: HandleKind = HandleKind::$name;
            const INVALID: Subtype = Subtype::$invalid;

            fn of(object: &Object) -> Option<&Arc<Self>> {
                match object {
                    Object::$name(this) => Some(this),
                    _ => None,
                }
            }

            fn forget(this: Arc<Self>) -> Object {
                Object::$name(this)
            }
        })+
    };
}

nouns!(
    Pz: InvalidHandlePz,
    Evd: InvalidHandleEvdRequest,
    Ep: InvalidHandleEp,
    Psp: InvalidHandlePsp,
    Rsp: InvalidHandleRsp,
    Csp: InvalidHandleCsp,
    Cr: InvalidHandleCr,
    Lmr: InvalidHandleLmr,
    Cno: InvalidHandleCno,
);
