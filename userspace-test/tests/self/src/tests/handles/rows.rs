// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Lists every call with a handle, and the type of that handle.

use crate::raw;
use libkdapl::raw::{call, Call, Message};
use libkdapl::{EvdFlags, Ia, Subtype};

/// Types of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ia,
    Pz,
    Evd,
    Ep,
    Lmr,
    Rmr,
    Psp,
    Rsp,
    Csp,
    Cr,
    Cno,
    Srq,
}

/// A handle field in the message of a call.
pub struct Row {
    pub name: &'static str,
    pub request: u32,
    /// The type of object that the field names.
    pub wants: Kind,
    /// Set if the field may be 0.
    pub or_none: bool,
    /// The subtype that goes with INVALID_HANDLE.
    pub subtype: Subtype,
    pub send: fn(&Ia, u64) -> Result<(), libkdapl::Error>,
}

/// Calls without a handle.
pub const WITHOUT: [u32; 8] = [
    call::DEVICE_GET.request(),
    call::PORT_GET.request(),
    call::IA_STAT.request(),
    call::IA_OPEN.request(),
    call::IA_QUERY.request(),
    call::IA_CLOSE.request(),
    call::PZ_CREATE.request(),
    call::CNO_CREATE.request(),
];

fn send<M: Message>(
    ia: &Ia,
    request: Call<M>,
    fill: impl Fn(&mut M),
) -> Result<(), libkdapl::Error> {
    let mut message = M::default();
    fill(&mut message);
    raw::call(ia.device(), request, &mut message)
}

/// Declares rows: call, field, further valid fields, type, subtype.
macro_rules! rows {
    (@or_none) => { false };
    (@or_none none) => { true };
    ($($call:ident { $handle:ident $(, $field:ident: $value:expr)* }
        $wants:ident $(or $none:ident)? => $subtype:ident;)*) => {
        vec![$(Row {
            name: call::$call.name(),
            request: call::$call.request(),
            wants: Kind::$wants,
            or_none: rows!(@or_none $($none)?),
            subtype: Subtype::$subtype,
            send: |ia, handle| send(ia, call::$call, |message| {
                message.$handle = handle;
                $(message.$field = $value;)*
            }),
        },)*]
    };
}

/// Returns all rows. The second handles of `EP_CREATE`, `EP_MODIFY` and `EP_DUP_CONNECT` have tests
/// of their own.
pub fn rows() -> Vec<Row> {
    let mut rows = rows! {
        PZ_FREE { handle } Pz => INVALID_HANDLE_PZ;
        LMR_CREATE { pz, length: 1 } Pz => INVALID_HANDLE_PZ;
        LMR_FREE { handle } Lmr => INVALID_HANDLE_LMR;
        LMR_QUERY { handle } Lmr => INVALID_HANDLE_LMR;
        RMR_CREATE { pz } Pz => INVALID_HANDLE_PZ;
        RMR_FREE { handle } Rmr => INVALID_HANDLE_RMR;
        RMR_QUERY { handle } Rmr => INVALID_HANDLE_RMR;
        RMR_BIND { handle } Rmr => INVALID_HANDLE_RMR;
        EVD_CREATE { cno, qlen: 1, flags: EvdFlags::SOFTWARE.0 } Cno or none => INVALID_HANDLE_CNO;
        EVD_FREE { handle } Evd => INVALID_HANDLE_EVD_REQUEST;
        EVD_QUERY { handle } Evd => INVALID_HANDLE_EVD_REQUEST;
        EVD_WAIT { handle, threshold: 1 } Evd => INVALID_HANDLE_EVD_REQUEST;
        EVD_DEQUEUE { handle } Evd => INVALID_HANDLE_EVD_REQUEST;
        EVD_POST_SE { handle } Evd => INVALID_HANDLE_EVD_REQUEST;
        EVD_MODIFY_CNO { handle } Evd => INVALID_HANDLE_EVD_REQUEST;
        EVD_ENABLE { handle } Evd => INVALID_HANDLE_EVD_REQUEST;
        EVD_DISABLE { handle } Evd => INVALID_HANDLE_EVD_REQUEST;
        EVD_SET_UNWAITABLE { handle } Evd => INVALID_HANDLE_EVD_REQUEST;
        EVD_CLEAR_UNWAITABLE { handle } Evd => INVALID_HANDLE_EVD_REQUEST;
        EVD_RESIZE { handle, qlen: 1 } Evd => INVALID_HANDLE_EVD_REQUEST;
        EVD_FD { handle, event_size: 64 } Evd => INVALID_HANDLE_EVD_REQUEST;
        EP_CREATE { pz } Pz or none => INVALID_HANDLE_PZ;
        EP_FREE { handle } Ep => INVALID_HANDLE_EP;
        EP_QUERY { handle } Ep => INVALID_HANDLE_EP;
        EP_GET_STATUS { handle } Ep => INVALID_HANDLE_EP;
        EP_SET_WATERMARK { handle } Ep => INVALID_HANDLE_EP;
        EP_RECV_QUERY { handle } Ep => INVALID_HANDLE_EP;
        EP_READY { handle } Ep => INVALID_HANDLE_EP;
        EP_CONNECT { handle } Ep => INVALID_HANDLE_EP;
        EP_DISCONNECT { handle } Ep => INVALID_HANDLE_EP;
        EP_PRIVATE_DATA { handle } Ep => INVALID_HANDLE_EP;
        EP_POST { handle } Ep => INVALID_HANDLE_EP;
        EP_SUBMIT { handle } Ep => INVALID_HANDLE_EP;
        EP_MODIFY { handle } Ep => INVALID_HANDLE_EP;
        EP_RESET { handle } Ep => INVALID_HANDLE_EP;
        EP_DUP_CONNECT { handle } Ep => INVALID_HANDLE_EP;
        EP_COMMON_CONNECT { handle } Ep => INVALID_HANDLE_EP;
        PSP_CREATE { evd } Evd => INVALID_HANDLE_EVD_CR;
        PSP_FREE { handle } Psp => INVALID_HANDLE_PSP;
        PSP_QUERY { handle } Psp => INVALID_HANDLE_PSP;
        RSP_CREATE { evd, conn_qual: 1 } Evd => INVALID_HANDLE_EVD_CR;
        RSP_CREATE { ep, conn_qual: 1 } Ep or none => INVALID_HANDLE_EP;
        RSP_FREE { handle } Rsp => INVALID_HANDLE_RSP;
        RSP_QUERY { handle } Rsp => INVALID_HANDLE_RSP;
        CSP_CREATE { evd } Evd => INVALID_HANDLE_EVD_CR;
        CSP_FREE { handle } Csp => INVALID_HANDLE_CSP;
        CSP_QUERY { handle } Csp => INVALID_HANDLE_CSP;
        CR_QUERY { handle } Cr => INVALID_HANDLE_CR;
        CR_ACCEPT { handle } Cr => INVALID_HANDLE_CR;
        CR_REJECT { handle } Cr => INVALID_HANDLE_CR;
        CR_HANDOFF { handle, conn_qual: 1 } Cr => INVALID_HANDLE_CR;
        SRQ_CREATE { pz, max_recv_dtos: 1, max_recv_iov: 1 } Pz => INVALID_HANDLE_PZ;
        SRQ_FREE { handle } Srq => INVALID_HANDLE_SRQ;
        SRQ_POST_RECV { handle } Srq => INVALID_HANDLE_SRQ;
        SRQ_QUERY { handle } Srq => INVALID_HANDLE_SRQ;
        SRQ_RESIZE { handle, number: 1 } Srq => INVALID_HANDLE_SRQ;
        SRQ_SET_LW { handle } Srq => INVALID_HANDLE_SRQ;
        EP_CREATE { srq } Srq or none => INVALID_HANDLE_SRQ;
        CNO_FREE { handle } Cno => INVALID_HANDLE_CNO;
        CNO_QUERY { handle } Cno => INVALID_HANDLE_CNO;
        CNO_WAIT { handle } Cno => INVALID_HANDLE_CNO;
        CNO_TRIGGER { handle } Cno => INVALID_HANDLE_CNO;
        CNO_MODIFY_AGENT { handle, agent_fd: -1 } Cno => INVALID_HANDLE_CNO;
        CNO_FD { handle } Cno => INVALID_HANDLE_CNO;
    };
    rows.push(Row {
        name: call::EVD_MODIFY_CNO.name(),
        request: call::EVD_MODIFY_CNO.request(),
        wants: Kind::Cno,
        or_none: true,
        subtype: Subtype::INVALID_HANDLE_CNO,
        send: |ia, cno| {
            let handle = ia.async_evd().handle().0;
            send(ia, call::EVD_MODIFY_CNO, |message| (message.handle, message.cno) = (handle, cno))
        },
    });
    rows
}
