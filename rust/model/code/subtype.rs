// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Subtypes of DAT return codes: the low sixteen bits.
//!
//! The table is complete, in DAT's order and with DAT's names, so that a new call finds its subtype
//! here.
//!
//! Abbreviations: CNO (Consumer Notification Object), EVD (Event Dispatcher), IA (Interface
//! Adapter), LMR (local memory region), PZ (Protection Zone), SRQ (shared receive queue).

/// Subtype of a DAT return code.
#[cfg_attr(
    not(kdapl_host),
    expect(dead_code, reason = "the table is DAT's, complete on purpose")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub(crate) enum Subtype {
    /// The type says all that is known.
    Unspecified = 0,
    /// A signal interrupted the wait.
    Interrupted = 1,
    /// Memory is exhausted.
    ResourceMemory = 2,
    /// The device has no more of the resource, or is gone.
    ResourceDevice = 3,
    /// Transport Endpoints (queue pairs) are exhausted.
    ResourceTep = 4,
    /// Transport event queues (completion queues) are exhausted.
    ResourceTevd = 5,
    /// Protection domains are exhausted.
    ResourceProtectionDomain = 6,
    /// Memory regions are exhausted.
    ResourceMemoryRegion = 7,
    /// Error handlers are exhausted.
    ResourceErrorHandler = 8,
    /// Credits are exhausted: too many operations are outstanding.
    ResourceCredits = 9,
    /// Shared receive queues are exhausted.
    ResourceSrq = 10,
    /// The handle is not that of an Interface Adapter.
    InvalidHandleIa = 11,
    /// The handle is not that of an Endpoint.
    InvalidHandleEp = 12,
    /// The handle is not that of a local memory region.
    InvalidHandleLmr = 13,
    /// The handle is not that of a remote memory region.
    InvalidHandleRmr = 14,
    /// The handle is not that of a Protection Zone.
    InvalidHandlePz = 15,
    /// The handle is not that of a Public Service Point.
    InvalidHandlePsp = 16,
    /// The handle is not that of a Reserved Service Point.
    InvalidHandleRsp = 17,
    /// The handle is not that of a Connection Request.
    InvalidHandleCr = 18,
    /// The handle is not that of a Consumer Notification Object.
    InvalidHandleCno = 19,
    /// The handle is not that of an EVD that takes Connection Requests.
    InvalidHandleEvdCr = 20,
    /// The handle is not that of an EVD for request completions.
    InvalidHandleEvdRequest = 21,
    /// The handle is not that of an EVD for receive completions.
    InvalidHandleEvdRecv = 22,
    /// The handle is not that of an EVD for connection events.
    InvalidHandleEvdConn = 23,
    /// The handle is not that of an EVD for asynchronous events.
    InvalidHandleEvdAsync = 24,
    /// The handle is not that of a shared receive queue.
    InvalidHandleSrq = 25,
    /// The handle is not that of a Common Service Point.
    InvalidHandleCsp = 26,
    /// The first argument is not a valid handle.
    InvalidHandle1 = 27,
    /// The second argument is not a valid handle.
    InvalidHandle2 = 28,
    /// The third argument is not a valid handle.
    InvalidHandle3 = 29,
    /// The fourth argument is not a valid handle.
    InvalidHandle4 = 30,
    /// The fifth argument is not a valid handle.
    InvalidHandle5 = 31,
    /// The sixth argument is not a valid handle.
    InvalidHandle6 = 32,
    /// The seventh argument is not a valid handle.
    InvalidHandle7 = 33,
    /// The eighth argument is not a valid handle.
    InvalidHandle8 = 34,
    /// The ninth argument is not a valid handle.
    InvalidHandle9 = 35,
    /// The tenth argument is not a valid handle.
    InvalidHandle10 = 36,
    /// The first argument is invalid.
    InvalidArg1 = 37,
    /// The second argument is invalid.
    InvalidArg2 = 38,
    /// The third argument is invalid.
    InvalidArg3 = 39,
    /// The fourth argument is invalid.
    InvalidArg4 = 40,
    /// The fifth argument is invalid.
    InvalidArg5 = 41,
    /// The sixth argument is invalid.
    InvalidArg6 = 42,
    /// The seventh argument is invalid.
    InvalidArg7 = 43,
    /// The eighth argument is invalid.
    InvalidArg8 = 44,
    /// The ninth argument is invalid.
    InvalidArg9 = 45,
    /// The tenth argument is invalid.
    InvalidArg10 = 46,
    /// The Endpoint is unconnected.
    InvalidStateEpUnconnected = 47,
    /// The Endpoint is connecting.
    InvalidStateEpActconnpending = 48,
    /// The Endpoint has an unanswered connection request.
    InvalidStateEpPassconnpending = 49,
    /// The Endpoint, which the provider created, has an unanswered connection request.
    InvalidStateEpTentconnpending = 50,
    /// The Endpoint is connected.
    InvalidStateEpConnected = 51,
    /// The Endpoint is disconnected.
    InvalidStateEpDisconnected = 52,
    /// The Endpoint is reserved for a service point.
    InvalidStateEpReserved = 53,
    /// The Endpoint has accepted a connection request, which is not confirmed yet.
    InvalidStateEpComplpending = 54,
    /// The Endpoint is disconnecting.
    InvalidStateEpDiscpending = 55,
    /// The Endpoint is under the provider's control.
    InvalidStateEpProvidercontrol = 56,
    /// The Endpoint is not ready.
    InvalidStateEpNotready = 57,
    /// The Endpoint's receive watermark forbids it.
    InvalidStateEpRecvWatermark = 58,
    /// The Endpoint's Protection Zone forbids it.
    InvalidStateEpPz = 59,
    /// The Endpoint's request EVD forbids it.
    InvalidStateEpEvdRequest = 60,
    /// The Endpoint's receive EVD forbids it.
    InvalidStateEpEvdRecv = 61,
    /// The Endpoint's connection EVD forbids it.
    InvalidStateEpEvdConnect = 62,
    /// The Endpoint is unconnected and not configured.
    InvalidStateEpUnconfigured = 63,
    /// The Endpoint is reserved and not configured.
    InvalidStateEpUnconfreserved = 64,
    /// The Endpoint has an unanswered connection request and is not configured.
    InvalidStateEpUnconfpassive = 65,
    /// The Endpoint, which the provider created, has an unanswered connection request and is not
    /// configured.
    InvalidStateEpUnconftentative = 66,
    /// The CNO is in use.
    InvalidStateCnoInUse = 67,
    /// The CNO is dead.
    InvalidStateCnoDead = 68,
    /// The EVD is open.
    InvalidStateEvdOpen = 69,
    /// The EVD is enabled.
    InvalidStateEvdEnabled = 70,
    /// The EVD is disabled.
    InvalidStateEvdDisabled = 71,
    /// The EVD is waitable.
    InvalidStateEvdWaitable = 72,
    /// The EVD is unwaitable.
    InvalidStateEvdUnwaitable = 73,
    /// The EVD is in use.
    InvalidStateEvdInUse = 74,
    /// The EVD is configured for notification.
    InvalidStateEvdConfigNotify = 75,
    /// The EVD is configured for solicited completions.
    InvalidStateEvdConfigSolicited = 76,
    /// The EVD is configured for a threshold.
    InvalidStateEvdConfigThreshold = 77,
    /// The EVD has a waiter already.
    InvalidStateEvdWaiter = 78,
    /// The EVD is the asynchronous one.
    InvalidStateEvdAsync = 79,
    /// The IA is in use.
    InvalidStateIaInUse = 80,
    /// The LMR is in use.
    InvalidStateLmrInUse = 81,
    /// The LMR is free.
    InvalidStateLmrFree = 82,
    /// The PZ is in use.
    InvalidStatePzInUse = 83,
    /// The PZ is free.
    InvalidStatePzFree = 84,
    /// The SRQ is operational.
    InvalidStateSrqOperational = 85,
    /// The SRQ is in error.
    InvalidStateSrqError = 86,
    /// The SRQ is in use.
    InvalidStateSrqInUse = 87,
    /// The SRQ is shut down.
    InvalidStateSrqShutdown = 88,
    /// The privilege for local reads is missing.
    PrivilegesRead = 89,
    /// The privilege for local writes is missing.
    PrivilegesWrite = 90,
    /// The privilege for RDMA reads is missing.
    PrivilegesRdmaRead = 91,
    /// The privilege for RDMA writes is missing.
    PrivilegesRdmaWrite = 92,
    /// Protection Zones differ for a local read.
    ProtectionRead = 93,
    /// Protection Zones differ for a local write.
    ProtectionWrite = 94,
    /// Protection Zones differ for an RDMA read.
    ProtectionRdmaRead = 95,
    /// Protection Zones differ for an RDMA write.
    ProtectionRdmaWrite = 96,
    /// The address family is not supported.
    InvalidAddressUnsupported = 97,
    /// The address is unreachable.
    InvalidAddressUnreachable = 98,
    /// The address is malformed.
    InvalidAddressMalformed = 99,
    /// No provider has this name.
    NameNotRegistered = 100,
    /// No provider has this major version.
    MajorNotFound = 101,
    /// No provider has this minor version.
    MinorNotFound = 102,
    /// No provider has this thread safety.
    ThreadSafetyNotFound = 103,
}
