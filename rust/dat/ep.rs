// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoints.
//!
//! The transition rules are in [`model::ep`](crate::model::ep); this module executes them.
//! Everything that changes in an Endpoint (EP) changes under one lock, from the step of the state
//! machine to the queueing of the event on an Event Dispatcher (EVD). This keeps the events of an
//! Endpoint in order.
//!
//! Terms of this module, besides QP (queue pair), PZ (Protection Zone) and CM (connection manager):
//!
//! - A life is the time between two resets of an Endpoint. Its number is part of each work request,
//!   so a late completion from before a reset is recognized.
//! - To give up a data transfer operation (DTO) is to free its slot and report it as flushed,
//!   without waiting for its completion.

mod config;
mod connect;
mod context;
mod create;
mod data;
mod effects;
mod endpoint;
mod inner;
mod keepalive;
mod state;
mod teardown;
mod trace;
mod watch;

pub(crate) use self::{
    config::{
        with_attributes,
        EpAttr,
        EpChange,
        Handles,
        Qos,
        PARTS, //
    },
    connect::{
        Connect,
        ConnectArguments, //
    },
    data::{
        NotPosted,
        Operands,
        Post, //
    },
    endpoint::Ep,
    trace::TraceEntries,
};

pub(super) use self::{
    config::Parts,
    connect::AcceptingEp,
    context::{
        EpContext,
        Receivers, //
    },
    data::{
        LocalAction,
        LocalRequest, //
    },
    teardown::{
        flush_freed,
        flush_live, //
    }, //
};

use self::{
    config::{
        distinct,
        QpParts, //
    },
    connect::{
        Addresses,
        Attempt,
        Connection, //
    },
    data::{
        receive_slots,
        Kept,
        LazyRing,
        Named,
        Plan,
        Preposted,
        Shares, //
    },
    effects::PendingEffects,
    endpoint::{
        EpQp,
        CONNECT,
        FAILURE,
        LAST_RECEIVE,
        PEER_DISCONNECT, //
    },
    inner::{
        receives,
        requests,
        Inner, //
    },
    teardown::PastLives,
};
