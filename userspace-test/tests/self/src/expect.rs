// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Checks of results and events.

use crate::context::Context;
use crate::repeat::unheard;
use anyhow::{bail, Result};
use libkdapl::{
    ConnectionEvent, DtoEvent, DtoOperation, DtoStatus, Error, Evd, Event, EventKind, Subtype, Type,
};
use std::fmt::Debug;

/// Returns the DAT type of an error, if it is one of DAT.
pub fn kind(error: &anyhow::Error) -> Option<Type> {
    error.downcast_ref().and_then(Error::kind)
}

/// Checks that `result` is a DAT error of this type.
pub fn refused<T: Debug>(result: Result<T, Error>, kind: Type) -> Result<()> {
    refused_with(result, kind, None)
}

/// Checks that `result` is a DAT error of this type and subtype.
pub fn refused_as<T: Debug>(result: Result<T, Error>, kind: Type, subtype: Subtype) -> Result<()> {
    refused_with(result, kind, Some(subtype))
}

/// Checks that `result` is this DAT error, of class ERROR, with any subtype if none is given.
fn refused_with<T: Debug>(
    result: Result<T, Error>,
    kind: Type,
    subtype: Option<Subtype>,
) -> Result<()> {
    let expected = (kind, subtype);
    let error = match result {
        Ok(value) => bail!("expected {expected:?}, but it succeeded: {value:?}"),
        Err(Error::Dat(error)) => error,
        Err(other) => bail!("expected {expected:?}, got: {other}"),
    };
    if error.class() != "DAT_CLASS_ERROR" {
        bail!("{error:?} is not of class ERROR");
    }
    if kind != error.kind() || subtype.is_some_and(|subtype| subtype != error.subtype()) {
        bail!("expected {expected:?}, got {error:?}");
    }
    Ok(())
}

/// Checks that the ioctl failed with this errno.
pub fn errno<T: Debug>(result: Result<T, Error>, expected: i32) -> Result<()> {
    match result {
        Err(Error::Transport { source, .. }) if source.raw_os_error() == Some(expected) => Ok(()),
        other => bail!("expected errno {expected}, got {other:?}"),
    }
}

/// Checks that a system call failed with this errno.
pub fn failed_with<T, E: Into<anyhow::Error>>(
    what: &str,
    outcome: Result<T, E>,
    expected: i32,
) -> Result<()> {
    let Err(error) = outcome.map_err(Into::into) else { bail!("{what} succeeds") };
    let found = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
    same(what, found, Some(expected)).map_err(|other| error.context(other))
}

/// Checks that an action failed with an error that says `text`.
pub fn fails_saying<T>(text: &str, outcome: Result<T>) -> Result<()> {
    match outcome {
        Ok(_) => bail!("expected an error that says '{text}'"),
        Err(error) if format!("{error:#}").contains(text) => Ok(()),
        Err(error) => Err(error.context(format!("the error does not say '{text}'"))),
    }
}

/// Checks that `event` is this connection event.
pub fn connection(event: &Event, expected: ConnectionEvent) -> Result<()> {
    if event.kind() != EventKind::Connection(expected) {
        unheard!("expected {expected}, got {event}");
    }
    Ok(())
}

/// Checks that `event` is the end of a connection: DISCONNECTED or BROKEN.
pub fn connection_over(event: &Event) -> Result<()> {
    match event.kind() {
        EventKind::Connection(ConnectionEvent::Disconnected | ConnectionEvent::Broken) => Ok(()),
        _ => unheard!("expected DISCONNECTED or BROKEN, got {event}"),
    }
}

/// Checks how a connection ended. Over iWARP, and over a link that loses packets, it may be
/// reported as the other of DISCONNECTED and BROKEN.
pub fn ended(context: &Context, event: &Event, expected: ConnectionEvent) -> Result<()> {
    if context.client.is_iwarp() || context.link_is_spoilt() {
        return connection_over(event);
    }
    connection(event, expected)
}

/// Checks that `event` is the completion of `operation` with `status`.
pub fn dto(event: &Event, operation: DtoOperation, status: DtoStatus) -> Result<DtoEvent> {
    match event {
        Event::Dto(dto) if dto.operation == operation && dto.status == status => Ok(*dto),
        // An operation that must fail, but succeeds, is always a fault of kDAPL.
        Event::Dto(dto) if dto.operation != operation || dto.status == DtoStatus::Success => {
            bail!("expected {operation} {status}, got {event}")
        }
        other => unheard!("expected {operation} {status}, got {other}"),
    }
}

/// Checks that `event` is the completion of an operation that the peer has refused. A spoilt link
/// may lose the peer's refusal. Then its next message ends the connection.
pub fn denied_by_peer(context: &Context, event: &Event, operation: DtoOperation) -> Result<()> {
    match event {
        Event::Dto(found) if context.link_is_spoilt() && found.status == DtoStatus::Flushed => {
            same("operation", found.operation, operation)
        }
        _ => dto(event, operation, DtoStatus::RemoteAccess).map(drop),
    }
}

/// Checks that `event` is the successful completion of `operation` with `length` bytes and
/// `cookie`.
pub fn done(event: &Event, operation: DtoOperation, length: u64, cookie: u64) -> Result<()> {
    let dto = dto(event, operation, DtoStatus::Success)?;
    if dto.length != length || dto.cookie != cookie {
        bail!("expected {length} bytes and cookie {cookie:#x}, got {event}");
    }
    Ok(())
}

/// Checks that no event is queued.
pub fn empty(evd: &Evd) -> Result<()> {
    match evd.dequeue() {
        Err(error) if error.is_empty() => Ok(()),
        Err(error) => Err(error.into()),
        Ok((event, _)) => bail!("expected an empty EVD, got {event}"),
    }
}

/// Checks that `left` and `right` are the same.
pub fn same<T: PartialEq + Debug>(what: &str, left: T, right: T) -> Result<()> {
    if left != right {
        bail!("{what}: {left:?}, expected {right:?}");
    }
    Ok(())
}
