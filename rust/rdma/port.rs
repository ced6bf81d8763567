// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ports of a device.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::device::{
    Device,
    Transport,
    NAME_LEN, //
};
use crate::sys::net::NetRef;
use core::ops::RangeInclusive;
use kdapl_bindings as bindings;

impl Device {
    /// Returns the name of the network device of a port, or `None` if it has none in this
    /// namespace.
    pub(crate) fn netdev(&self, port: u32, net: &NetRef) -> Option<[u8; NAME_LEN]> {
        let mut name = [0; NAME_LEN];
        // SAFETY: The device and the namespace are alive. The buffer is a local variable of the
        // given size.
        let found = unsafe {
            bindings::kdapl_helper_port_netdev(
                self.as_ptr(),
                port,
                net.as_ptr(),
                name.as_mut_ptr().cast(),
                NAME_LEN,
            )
        };
        found.then_some(name)
    }

    /// Returns the numbers of the ports.
    pub(crate) fn ports(&self) -> RangeInclusive<u32> {
        let (mut first, mut last) = (0, 0);
        // SAFETY: The device is alive, and the numbers are local variables.
        unsafe { bindings::kdapl_helper_ports(self.as_ptr(), &raw mut first, &raw mut last) };
        first..=last
    }

    /// Returns the transport protocol of a port. InfiniBand and RoCE may differ from port to port.
    pub(crate) fn port_transport(&self, port: u32) -> Transport {
        // SAFETY: The device is alive. The helper checks the number of the port.
        match unsafe { bindings::kdapl_helper_device_transport(self.as_ptr(), port) } {
            bindings::KDAPL_TRANSPORT_IWARP => Transport::Iwarp,
            bindings::KDAPL_TRANSPORT_ROCE => Transport::Roce,
            _ => Transport::Ib,
        }
    }

    /// Returns whether the device is an iWARP one. All its ports are then.
    pub(crate) fn is_iwarp(&self) -> bool {
        self.port_transport(*self.ports().start()) == Transport::Iwarp
    }

    /// Returns the attributes of a port, or `None` if the query fails.
    fn port(&self, port: u32) -> Option<bindings::ib_port_attr> {
        let mut attr = bindings::ib_port_attr::default();
        // SAFETY: The device is alive, and `attr` is a local variable. The function checks the
        // number of the port.
        let ret = unsafe { bindings::ib_query_port(self.as_ptr(), port, &raw mut attr) };
        (ret == 0).then_some(attr)
    }

    /// Returns whether a port is active.
    pub(crate) fn is_port_active(&self, port: u32) -> bool {
        self.port(port)
            .is_some_and(|attr| attr.state == bindings::ib_port_state_IB_PORT_ACTIVE)
    }

    /// Returns the length of the longest message of a port in bytes, or 0 if it is unknown.
    pub(crate) fn max_message_size(&self, port: u32) -> u32 {
        self.port(port).map_or(0, |attr| attr.max_msg_sz)
    }

    /// Returns the maximum payload of a packet of a port in bytes, or 0 if it is unknown.
    pub(crate) fn mtu(&self, port: u32) -> u32 {
        match self.port(port).map(|attr| attr.active_mtu) {
            Some(bindings::ib_mtu_IB_MTU_256) => 256,
            Some(bindings::ib_mtu_IB_MTU_512) => 512,
            Some(bindings::ib_mtu_IB_MTU_1024) => 1024,
            Some(bindings::ib_mtu_IB_MTU_2048) => 2048,
            Some(bindings::ib_mtu_IB_MTU_4096) => 4096,
            _ => 0,
        }
    }
}
