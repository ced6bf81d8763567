// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! DAT return codes. A code consists of `class (31-30) | type (29-16) | subtype (15-0)`.

use std::fmt;

macro_rules! names {
    ($(#[$doc:meta])* $type:ident, $prefix:literal { $($name:ident = $value:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $type(pub u16);

        #[allow(missing_docs)]
        impl $type {
            $(pub const $name: Self = Self($value);)*

            /// Returns DAT's name without its prefix, if DAT defines the number.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => write!(f, concat!($prefix, "{}"), name),
                    None => write!(f, "{:#x}", self.0),
                }
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

names! {
    /// Type of an error, by DAT's name.
    Type, "DAT_" {
        ABORT = 0x1,
        CONN_QUAL_IN_USE = 0x2,
        INSUFFICIENT_RESOURCES = 0x3,
        INTERNAL_ERROR = 0x4,
        INVALID_HANDLE = 0x5,
        INVALID_PARAMETER = 0x6,
        INVALID_STATE = 0x7,
        LENGTH_ERROR = 0x8,
        MODEL_NOT_SUPPORTED = 0x9,
        PROVIDER_NOT_FOUND = 0xa,
        PRIVILEGES_VIOLATION = 0xb,
        PROTECTION_VIOLATION = 0xc,
        QUEUE_EMPTY = 0xd,
        QUEUE_FULL = 0xe,
        TIMEOUT_EXPIRED = 0xf,
        PROVIDER_ALREADY_REGISTERED = 0x10,
        PROVIDER_IN_USE = 0x11,
        INVALID_ADDRESS = 0x12,
        INTERRUPTED_CALL = 0x13,
        CONN_QUAL_UNAVAILABLE = 0x14,
        RESERVED_LMR = 0x15,
        PORT_IN_USE = 0x16,
        COMM_NOT_SUPPORTED = 0x17,
        NOT_IMPLEMENTED = 0x3fff,
    }
}

names! {
    /// Subtype of an error, by DAT's name.
    Subtype, "" {
        NO_SUBTYPE = 0,
        SUB_INTERRUPTED = 1,
        RESOURCE_MEMORY = 2,
        RESOURCE_DEVICE = 3,
        RESOURCE_TEP = 4,
        RESOURCE_TEVD = 5,
        RESOURCE_PROTECTION_DOMAIN = 6,
        RESOURCE_MEMORY_REGION = 7,
        RESOURCE_ERROR_HANDLER = 8,
        RESOURCE_CREDITS = 9,
        RESOURCE_SRQ = 10,
        INVALID_HANDLE_IA = 11,
        INVALID_HANDLE_EP = 12,
        INVALID_HANDLE_LMR = 13,
        INVALID_HANDLE_RMR = 14,
        INVALID_HANDLE_PZ = 15,
        INVALID_HANDLE_PSP = 16,
        INVALID_HANDLE_RSP = 17,
        INVALID_HANDLE_CR = 18,
        INVALID_HANDLE_CNO = 19,
        INVALID_HANDLE_EVD_CR = 20,
        INVALID_HANDLE_EVD_REQUEST = 21,
        INVALID_HANDLE_EVD_RECV = 22,
        INVALID_HANDLE_EVD_CONN = 23,
        INVALID_HANDLE_EVD_ASYNC = 24,
        INVALID_HANDLE_SRQ = 25,
        INVALID_HANDLE_CSP = 26,
        INVALID_HANDLE1 = 27,
        INVALID_HANDLE2 = 28,
        INVALID_HANDLE3 = 29,
        INVALID_HANDLE4 = 30,
        INVALID_HANDLE5 = 31,
        INVALID_HANDLE6 = 32,
        INVALID_HANDLE7 = 33,
        INVALID_HANDLE8 = 34,
        INVALID_HANDLE9 = 35,
        INVALID_HANDLE10 = 36,
        INVALID_ARG1 = 37,
        INVALID_ARG2 = 38,
        INVALID_ARG3 = 39,
        INVALID_ARG4 = 40,
        INVALID_ARG5 = 41,
        INVALID_ARG6 = 42,
        INVALID_ARG7 = 43,
        INVALID_ARG8 = 44,
        INVALID_ARG9 = 45,
        INVALID_ARG10 = 46,
        INVALID_STATE_EP_UNCONNECTED = 47,
        INVALID_STATE_EP_ACTCONNPENDING = 48,
        INVALID_STATE_EP_PASSCONNPENDING = 49,
        INVALID_STATE_EP_TENTCONNPENDING = 50,
        INVALID_STATE_EP_CONNECTED = 51,
        INVALID_STATE_EP_DISCONNECTED = 52,
        INVALID_STATE_EP_RESERVED = 53,
        INVALID_STATE_EP_COMPLPENDING = 54,
        INVALID_STATE_EP_DISCPENDING = 55,
        INVALID_STATE_EP_PROVIDERCONTROL = 56,
        INVALID_STATE_EP_NOTREADY = 57,
        INVALID_STATE_EP_RECV_WATERMARK = 58,
        INVALID_STATE_EP_PZ = 59,
        INVALID_STATE_EP_EVD_REQUEST = 60,
        INVALID_STATE_EP_EVD_RECV = 61,
        INVALID_STATE_EP_EVD_CONNECT = 62,
        INVALID_STATE_EP_UNCONFIGURED = 63,
        INVALID_STATE_EP_UNCONFRESERVED = 64,
        INVALID_STATE_EP_UNCONFPASSIVE = 65,
        INVALID_STATE_EP_UNCONFTENTATIVE = 66,
        INVALID_STATE_CNO_IN_USE = 67,
        INVALID_STATE_CNO_DEAD = 68,
        INVALID_STATE_EVD_OPEN = 69,
        INVALID_STATE_EVD_ENABLED = 70,
        INVALID_STATE_EVD_DISABLED = 71,
        INVALID_STATE_EVD_WAITABLE = 72,
        INVALID_STATE_EVD_UNWAITABLE = 73,
        INVALID_STATE_EVD_IN_USE = 74,
        INVALID_STATE_EVD_CONFIG_NOTIFY = 75,
        INVALID_STATE_EVD_CONFIG_SOLICITED = 76,
        INVALID_STATE_EVD_CONFIG_THRESHOLD = 77,
        INVALID_STATE_EVD_WAITER = 78,
        INVALID_STATE_EVD_ASYNC = 79,
        INVALID_STATE_IA_IN_USE = 80,
        INVALID_STATE_LMR_IN_USE = 81,
        INVALID_STATE_LMR_FREE = 82,
        INVALID_STATE_PZ_IN_USE = 83,
        INVALID_STATE_PZ_FREE = 84,
        INVALID_STATE_SRQ_OPERATIONAL = 85,
        INVALID_STATE_SRQ_ERROR = 86,
        INVALID_STATE_SRQ_IN_USE = 87,
        INVALID_STATE_SRQ_SHUTDOWN = 88,
        PRIVILEGES_READ = 89,
        PRIVILEGES_WRITE = 90,
        PRIVILEGES_RDMA_READ = 91,
        PRIVILEGES_RDMA_WRITE = 92,
        PROTECTION_READ = 93,
        PROTECTION_WRITE = 94,
        PROTECTION_RDMA_READ = 95,
        PROTECTION_RDMA_WRITE = 96,
        INVALID_ADDRESS_UNSUPPORTED = 97,
        INVALID_ADDRESS_UNREACHABLE = 98,
        INVALID_ADDRESS_MALFORMED = 99,
        NAME_NOT_REGISTERED = 100,
        MAJOR_NOT_FOUND = 101,
        MINOR_NOT_FOUND = 102,
        THREAD_SAFETY_NOT_FOUND = 103,
    }
}

impl Type {
    /// Returns the `DAT_RETURN` of class ERROR with this type and subtype.
    #[must_use]
    pub const fn code(self, subtype: Subtype) -> u32 {
        /// `DAT_CLASS_ERROR`.
        const CLASS_ERROR: u32 = 0x8000_0000;
        CLASS_ERROR | ((self.0 as u32) << 16) | subtype.0 as u32
    }
}
