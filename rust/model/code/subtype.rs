// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Subtypes of DAT return codes: the low sixteen bits.
//!
//! The table is complete, in DAT's order and with DAT's names, so that a new call finds its subtype
//! here. `include/rdma/kdat_subtypes.h` has the same names for kernel consumers; a test compares
//! both.
//!
//! Abbreviations: CNO (Consumer Notification Object), EVD (Event Dispatcher), IA (Interface
//! Adapter), LMR (local memory region), PZ (Protection Zone), SRQ (shared receive queue).

use super::named::named;

named! {
    /// Subtype of a DAT return code.
    Subtype;

    /// The type says all that is known.
    Unspecified = 0, DAT_NO_SUBTYPE;
    /// A signal interrupted the wait.
    Interrupted = 1, DAT_SUB_INTERRUPTED;
    /// Memory is exhausted.
    ResourceMemory = 2, DAT_RESOURCE_MEMORY;
    /// The device has no more of the resource, or is gone.
    ResourceDevice = 3, DAT_RESOURCE_DEVICE;
    /// Transport Endpoints (queue pairs) are exhausted.
    ResourceTep = 4, DAT_RESOURCE_TEP;
    /// Transport event queues (completion queues) are exhausted.
    ResourceTevd = 5, DAT_RESOURCE_TEVD;
    /// Protection domains are exhausted.
    ResourceProtectionDomain = 6, DAT_RESOURCE_PROTECTION_DOMAIN;
    /// Memory regions are exhausted.
    ResourceMemoryRegion = 7, DAT_RESOURCE_MEMORY_REGION;
    /// Error handlers are exhausted.
    ResourceErrorHandler = 8, DAT_RESOURCE_ERROR_HANDLER;
    /// Credits are exhausted: too many operations are outstanding.
    ResourceCredits = 9, DAT_RESOURCE_CREDITS;
    /// Shared receive queues are exhausted.
    ResourceSrq = 10, DAT_RESOURCE_SRQ;
    /// The handle is not that of an Interface Adapter.
    InvalidHandleIa = 11, DAT_INVALID_HANDLE_IA;
    /// The handle is not that of an Endpoint.
    InvalidHandleEp = 12, DAT_INVALID_HANDLE_EP;
    /// The handle is not that of a local memory region.
    InvalidHandleLmr = 13, DAT_INVALID_HANDLE_LMR;
    /// The handle is not that of a remote memory region.
    InvalidHandleRmr = 14, DAT_INVALID_HANDLE_RMR;
    /// The handle is not that of a Protection Zone.
    InvalidHandlePz = 15, DAT_INVALID_HANDLE_PZ;
    /// The handle is not that of a Public Service Point.
    InvalidHandlePsp = 16, DAT_INVALID_HANDLE_PSP;
    /// The handle is not that of a Reserved Service Point.
    InvalidHandleRsp = 17, DAT_INVALID_HANDLE_RSP;
    /// The handle is not that of a Connection Request.
    InvalidHandleCr = 18, DAT_INVALID_HANDLE_CR;
    /// The handle is not that of a Consumer Notification Object.
    InvalidHandleCno = 19, DAT_INVALID_HANDLE_CNO;
    /// The handle is not that of an EVD that takes Connection Requests.
    InvalidHandleEvdCr = 20, DAT_INVALID_HANDLE_EVD_CR;
    /// The handle is not that of an EVD for request completions.
    InvalidHandleEvdRequest = 21, DAT_INVALID_HANDLE_EVD_REQUEST;
    /// The handle is not that of an EVD for receive completions.
    InvalidHandleEvdRecv = 22, DAT_INVALID_HANDLE_EVD_RECV;
    /// The handle is not that of an EVD for connection events.
    InvalidHandleEvdConn = 23, DAT_INVALID_HANDLE_EVD_CONN;
    /// The handle is not that of an EVD for asynchronous events.
    InvalidHandleEvdAsync = 24, DAT_INVALID_HANDLE_EVD_ASYNC;
    /// The handle is not that of a shared receive queue.
    InvalidHandleSrq = 25, DAT_INVALID_HANDLE_SRQ;
    /// The handle is not that of a Common Service Point.
    InvalidHandleCsp = 26, DAT_INVALID_HANDLE_CSP;
    /// The first argument is not a valid handle.
    InvalidHandle1 = 27, DAT_INVALID_HANDLE1;
    /// The second argument is not a valid handle.
    InvalidHandle2 = 28, DAT_INVALID_HANDLE2;
    /// The third argument is not a valid handle.
    InvalidHandle3 = 29, DAT_INVALID_HANDLE3;
    /// The fourth argument is not a valid handle.
    InvalidHandle4 = 30, DAT_INVALID_HANDLE4;
    /// The fifth argument is not a valid handle.
    InvalidHandle5 = 31, DAT_INVALID_HANDLE5;
    /// The sixth argument is not a valid handle.
    InvalidHandle6 = 32, DAT_INVALID_HANDLE6;
    /// The seventh argument is not a valid handle.
    InvalidHandle7 = 33, DAT_INVALID_HANDLE7;
    /// The eighth argument is not a valid handle.
    InvalidHandle8 = 34, DAT_INVALID_HANDLE8;
    /// The ninth argument is not a valid handle.
    InvalidHandle9 = 35, DAT_INVALID_HANDLE9;
    /// The tenth argument is not a valid handle.
    InvalidHandle10 = 36, DAT_INVALID_HANDLE10;
    /// The first argument is invalid.
    InvalidArg1 = 37, DAT_INVALID_ARG1;
    /// The second argument is invalid.
    InvalidArg2 = 38, DAT_INVALID_ARG2;
    /// The third argument is invalid.
    InvalidArg3 = 39, DAT_INVALID_ARG3;
    /// The fourth argument is invalid.
    InvalidArg4 = 40, DAT_INVALID_ARG4;
    /// The fifth argument is invalid.
    InvalidArg5 = 41, DAT_INVALID_ARG5;
    /// The sixth argument is invalid.
    InvalidArg6 = 42, DAT_INVALID_ARG6;
    /// The seventh argument is invalid.
    InvalidArg7 = 43, DAT_INVALID_ARG7;
    /// The eighth argument is invalid.
    InvalidArg8 = 44, DAT_INVALID_ARG8;
    /// The ninth argument is invalid.
    InvalidArg9 = 45, DAT_INVALID_ARG9;
    /// The tenth argument is invalid.
    InvalidArg10 = 46, DAT_INVALID_ARG10;
    /// The Endpoint is unconnected.
    InvalidStateEpUnconnected = 47, DAT_INVALID_STATE_EP_UNCONNECTED;
    /// The Endpoint is connecting.
    InvalidStateEpActconnpending = 48, DAT_INVALID_STATE_EP_ACTCONNPENDING;
    /// The Endpoint has an unanswered connection request.
    InvalidStateEpPassconnpending = 49, DAT_INVALID_STATE_EP_PASSCONNPENDING;
    /// The Endpoint, which the provider created, has an unanswered connection request.
    InvalidStateEpTentconnpending = 50, DAT_INVALID_STATE_EP_TENTCONNPENDING;
    /// The Endpoint is connected.
    InvalidStateEpConnected = 51, DAT_INVALID_STATE_EP_CONNECTED;
    /// The Endpoint is disconnected.
    InvalidStateEpDisconnected = 52, DAT_INVALID_STATE_EP_DISCONNECTED;
    /// The Endpoint is reserved for a service point.
    InvalidStateEpReserved = 53, DAT_INVALID_STATE_EP_RESERVED;
    /// The Endpoint has accepted a connection request, which is not confirmed yet.
    InvalidStateEpComplpending = 54, DAT_INVALID_STATE_EP_COMPLPENDING;
    /// The Endpoint is disconnecting.
    InvalidStateEpDiscpending = 55, DAT_INVALID_STATE_EP_DISCPENDING;
    /// The Endpoint is under the provider's control.
    InvalidStateEpProvidercontrol = 56, DAT_INVALID_STATE_EP_PROVIDERCONTROL;
    /// The Endpoint is not ready.
    InvalidStateEpNotready = 57, DAT_INVALID_STATE_EP_NOTREADY;
    /// The Endpoint's receive watermark forbids it.
    InvalidStateEpRecvWatermark = 58, DAT_INVALID_STATE_EP_RECV_WATERMARK;
    /// The Endpoint's Protection Zone forbids it.
    InvalidStateEpPz = 59, DAT_INVALID_STATE_EP_PZ;
    /// The Endpoint's request EVD forbids it.
    InvalidStateEpEvdRequest = 60, DAT_INVALID_STATE_EP_EVD_REQUEST;
    /// The Endpoint's receive EVD forbids it.
    InvalidStateEpEvdRecv = 61, DAT_INVALID_STATE_EP_EVD_RECV;
    /// The Endpoint's connection EVD forbids it.
    InvalidStateEpEvdConnect = 62, DAT_INVALID_STATE_EP_EVD_CONNECT;
    /// The Endpoint is unconnected and not configured.
    InvalidStateEpUnconfigured = 63, DAT_INVALID_STATE_EP_UNCONFIGURED;
    /// The Endpoint is reserved and not configured.
    InvalidStateEpUnconfreserved = 64, DAT_INVALID_STATE_EP_UNCONFRESERVED;
    /// The Endpoint has an unanswered connection request and is not configured.
    InvalidStateEpUnconfpassive = 65, DAT_INVALID_STATE_EP_UNCONFPASSIVE;
    /// The Endpoint, which the provider created, has an unanswered connection request and is not
    /// configured.
    InvalidStateEpUnconftentative = 66, DAT_INVALID_STATE_EP_UNCONFTENTATIVE;
    /// The CNO is in use.
    InvalidStateCnoInUse = 67, DAT_INVALID_STATE_CNO_IN_USE;
    /// The CNO is dead.
    InvalidStateCnoDead = 68, DAT_INVALID_STATE_CNO_DEAD;
    /// The EVD is open.
    InvalidStateEvdOpen = 69, DAT_INVALID_STATE_EVD_OPEN;
    /// The EVD is enabled.
    InvalidStateEvdEnabled = 70, DAT_INVALID_STATE_EVD_ENABLED;
    /// The EVD is disabled.
    InvalidStateEvdDisabled = 71, DAT_INVALID_STATE_EVD_DISABLED;
    /// The EVD is waitable.
    InvalidStateEvdWaitable = 72, DAT_INVALID_STATE_EVD_WAITABLE;
    /// The EVD is unwaitable.
    InvalidStateEvdUnwaitable = 73, DAT_INVALID_STATE_EVD_UNWAITABLE;
    /// The EVD is in use.
    InvalidStateEvdInUse = 74, DAT_INVALID_STATE_EVD_IN_USE;
    /// The EVD is configured for notification.
    InvalidStateEvdConfigNotify = 75, DAT_INVALID_STATE_EVD_CONFIG_NOTIFY;
    /// The EVD is configured for solicited completions.
    InvalidStateEvdConfigSolicited = 76, DAT_INVALID_STATE_EVD_CONFIG_SOLICITED;
    /// The EVD is configured for a threshold.
    InvalidStateEvdConfigThreshold = 77, DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD;
    /// The EVD has a waiter already.
    InvalidStateEvdWaiter = 78, DAT_INVALID_STATE_EVD_WAITER;
    /// The EVD is the asynchronous one.
    InvalidStateEvdAsync = 79, DAT_INVALID_STATE_EVD_ASYNC;
    /// The IA is in use.
    InvalidStateIaInUse = 80, DAT_INVALID_STATE_IA_IN_USE;
    /// The LMR is in use.
    InvalidStateLmrInUse = 81, DAT_INVALID_STATE_LMR_IN_USE;
    /// The LMR is free.
    InvalidStateLmrFree = 82, DAT_INVALID_STATE_LMR_FREE;
    /// The PZ is in use.
    InvalidStatePzInUse = 83, DAT_INVALID_STATE_PZ_IN_USE;
    /// The PZ is free.
    InvalidStatePzFree = 84, DAT_INVALID_STATE_PZ_FREE;
    /// The SRQ is operational.
    InvalidStateSrqOperational = 85, DAT_INVALID_STATE_SRQ_OPERATIONAL;
    /// The SRQ is in error.
    InvalidStateSrqError = 86, DAT_INVALID_STATE_SRQ_ERROR;
    /// The SRQ is in use.
    InvalidStateSrqInUse = 87, DAT_INVALID_STATE_SRQ_IN_USE;
    /// The SRQ is shut down.
    InvalidStateSrqShutdown = 88, DAT_INVALID_STATE_SRQ_SHUTDOWN;
    /// The privilege for local reads is missing.
    PrivilegesRead = 89, DAT_PRIVILEGES_READ;
    /// The privilege for local writes is missing.
    PrivilegesWrite = 90, DAT_PRIVILEGES_WRITE;
    /// The privilege for RDMA reads is missing.
    PrivilegesRdmaRead = 91, DAT_PRIVILEGES_RDMA_READ;
    /// The privilege for RDMA writes is missing.
    PrivilegesRdmaWrite = 92, DAT_PRIVILEGES_RDMA_WRITE;
    /// Protection Zones differ for a local read.
    ProtectionRead = 93, DAT_PROTECTION_READ;
    /// Protection Zones differ for a local write.
    ProtectionWrite = 94, DAT_PROTECTION_WRITE;
    /// Protection Zones differ for an RDMA read.
    ProtectionRdmaRead = 95, DAT_PROTECTION_RDMA_READ;
    /// Protection Zones differ for an RDMA write.
    ProtectionRdmaWrite = 96, DAT_PROTECTION_RDMA_WRITE;
    /// The address family is not supported.
    InvalidAddressUnsupported = 97, DAT_INVALID_ADDRESS_UNSUPPORTED;
    /// The address is unreachable.
    InvalidAddressUnreachable = 98, DAT_INVALID_ADDRESS_UNREACHABLE;
    /// The address is malformed.
    InvalidAddressMalformed = 99, DAT_INVALID_ADDRESS_MALFORMED;
    /// No provider has this name.
    NameNotRegistered = 100, DAT_NAME_NOT_REGISTERED;
    /// No provider has this major version.
    MajorNotFound = 101, DAT_MAJOR_NOT_FOUND;
    /// No provider has this minor version.
    MinorNotFound = 102, DAT_MINOR_NOT_FOUND;
    /// No provider has this thread safety.
    ThreadSafetyNotFound = 103, DAT_THREAD_SAFETY_NOT_FOUND;
}
