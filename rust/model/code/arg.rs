// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Names of the arguments that a DAT call can refuse as invalid.

/// Argument of a DAT call.
///
/// An error names the argument that is invalid. Its number depends on the call: see
/// [`order`](super::order).
///
/// Abbreviations: CNO (Consumer Notification Object), EVD (Event Dispatcher).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Arg {
    /// Agent of a CNO.
    Agent,
    /// EVD for asynchronous events.
    AsyncEvd,
    /// Attributes of an Endpoint.
    Attr,
    /// Number of unanswered connection requests that a service point may have.
    Backlog,
    /// Number of upcalls in one run.
    Budget,
    /// Return code.
    Code,
    /// Communicator of a Common Service Point.
    Communicator,
    /// Connection qualifier.
    ConnQual,
    /// EVD for connection events.
    ConnectEvd,
    /// Data transfer operations (DTOs) to post, and their number.
    Dtos,
    /// Endpoint.
    Ep,
    /// EVD.
    Evd,
    /// Event to post, or memory for the events to take.
    Event,
    /// Flags.
    Flags,
    /// Memory for the handle of the new object.
    Handle,
    /// Hard high watermark.
    HardWatermark,
    /// Memory for the type of a handle.
    HandleType,
    /// Memory for the context that a DTO names memory by.
    LmrContext,
    /// Memory for the name of a type of return codes.
    Major,
    /// Mask of the parameters to query or to modify.
    Mask,
    /// Memory for the name of a subtype of return codes.
    Minor,
    /// Network namespace.
    Net,
    /// Type of a DTO.
    Operation,
    /// Hint for the optimization of memory accesses.
    Optimize,
    /// Parameters to modify, or memory for the parameters to query.
    Param,
    /// Private data.
    PrivateData,
    /// Number of bytes of private data.
    PrivateDataSize,
    /// Privileges of the users of memory.
    Privileges,
    /// Protection Zone.
    Pz,
    /// Queue length.
    Qlen,
    /// EVD for completions of receives.
    RecvEvd,
    /// Description of the memory of an LMR.
    Region,
    /// Segment of the peer's memory.
    RemoteSegment,
    /// EVD for completions of requests.
    RequestEvd,
    /// Scope of the contexts of memory.
    Scope,
    /// Number of segments of local memory.
    SegmentCount,
    /// Segments of local memory.
    Segments,
    /// Number of events to wait for.
    Threshold,
    /// Time-out.
    Timeout,
    /// Upcall function.
    Upcall,
    /// Upcall policy.
    UpcallPolicy,
    /// Type of the addresses of memory: virtual or zero-based.
    VaType,
    /// Completion vector.
    Vector,
    /// Low watermark.
    Watermark,
}
