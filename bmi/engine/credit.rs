// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Flow control of one connection, in both directions.
//!
//! A message takes a *credit*: a receive that the peer has posted. There are two classes of them.
//! A data credit comes back when the consumer has taken the message, so a consumer that posts no
//! receives stops its peer's data. A control credit comes back at once, because the engine itself
//! takes the message. Data never takes a control credit.
//!
//! Each message returns the credits that its sender owes. Without other messages CREDIT does, which
//! is sent when half of a window is owed. The last control credit is for a CREDIT that returns half
//! of the control window. So the two sides cannot wait for each other: a side that has used all of
//! its control credits has just returned half of the peer's.

/// Class of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A message of the consumer: eager, unexpected, or the offer of a rendezvous.
    Data,
    /// A message of the engine.
    Control,
}

/// Numbers of receives, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// For data.
    pub(crate) data: u16,
    /// For control messages.
    pub(crate) control: u16,
}

impl Window {
    /// Fewest control credits with which neither side waits for the other.
    pub(crate) const MIN_CONTROL: u16 = 4;

    /// Messages beyond the window that a peer of a home may have there, while a receive waits for a
    /// later one.
    pub(crate) const LEND: u32 = 1024;

    /// The same, of all peers together: as many as four connections may have, so that one does not
    /// keep the others from all. With messages of 16 KiB, this is 64 MiB for any number of peers.
    pub(crate) const LEND_ALL: u32 = 4 * Self::LEND;

    /// Receives for control messages that the homes post.
    const CONTROL: u16 = 8;

    /// Requests for RDMA that the homes allow, besides messages.
    const RDMA: u16 = 16;

    /// Returns the window of a home, which lets a peer send so many messages.
    pub(crate) const fn of_home(data: u16) -> Self {
        Self {
            data,
            control: Self::CONTROL,
        }
    }

    /// Returns the requests of a rail: the messages of a window, and RDMA.
    pub(crate) const fn requests(self) -> u16 {
        self.data
            .saturating_add(self.control)
            .saturating_add(Self::RDMA)
    }

    /// Returns the number of all receives.
    pub(crate) const fn sum(self) -> u32 {
        // Widening casts; `u32::from` is not `const`.
        (self.data as u32).wrapping_add(self.control as u32)
    }
}

/// Flow control of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// Messages that the peer can take now.
    have: u16,
    /// Largest value of `have`.
    peers_window: u16,
    /// Messages that the peer may send now.
    granted: u16,
    /// Credits to return.
    owed: u16,
    /// Largest sum of `granted`, `owed` and the messages that no consumer has taken, without those
    /// for which a credit was lent.
    window: u16,
}

/// Flow control of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credits {
    data: Flow,
    control: Flow,
}

impl Flow {
    const fn new(ours: u16, peers: u16) -> Self {
        Self {
            have: peers,
            peers_window: peers,
            granted: ours,
            owed: 0,
            window: ours,
        }
    }

    fn take_owed(&mut self) -> u16 {
        let owed = core::mem::take(&mut self.owed);
        self.granted = self.granted.saturating_add(owed);
        owed
    }

    /// Returns whether the peer may have so many credits.
    fn add(&mut self, returned: u16) -> bool {
        let sum = self.have.saturating_add(returned);
        let valid = sum <= self.peers_window;
        if valid {
            self.have = sum;
        }
        valid
    }

    fn owes_half(&self) -> bool {
        self.owed > 0 && self.owed >= self.window / 2
    }
}

impl Credits {
    /// Creates the credits of a new connection from the windows of both sides.
    pub(crate) const fn new(ours: Window, peers: Window) -> Self {
        Self {
            data: Flow::new(ours.data, peers.data),
            control: Flow::new(ours.control, peers.control),
        }
    }

    /// Returns the credits that messages of a class may take now.
    pub(crate) const fn available(&self, class: Class) -> u16 {
        match class {
            Class::Data => self.data.have,
            // The last one returns control credits.
            Class::Control => self.control.have.saturating_sub(1),
        }
    }

    /// Returns whether a CREDIT message has to be sent now. `asked` says that the peer waits for
    /// one.
    pub(crate) fn must_return(&self, asked: bool) -> bool {
        let wanted = asked || self.data.owes_half();
        match self.control.have {
            0 => false,
            1 => self.control.owes_half(),
            _ => wanted || self.control.owes_half(),
        }
    }

    /// Takes a credit for a message. Returns the credits that the message returns.
    pub(crate) fn send(&mut self, class: Class) -> Window {
        let flow = self.flow(class);
        flow.have = flow.have.saturating_sub(1);
        Window {
            data: self.data.take_owed(),
            control: self.control.take_owed(),
        }
    }

    /// Records a message of the peer, and the credits that it returns. Returns `false` if the peer
    /// had no credit, or returns more than it can owe.
    #[must_use]
    pub(crate) fn arrive(&mut self, class: Class, returned: Window) -> bool {
        let flow = self.flow(class);
        let Some(granted) = flow.granted.checked_sub(1) else {
            return false;
        };
        flow.granted = granted;
        self.data.add(returned.data) && self.control.add(returned.control)
    }

    /// Returns whether the peer has no data credit, not even on its way.
    pub(crate) const fn peer_has_none(&self) -> bool {
        self.data.granted == 0
    }

    /// Returns whether data credits are owed.
    pub(crate) const fn owes_data(&self) -> bool {
        self.data.owed > 0
    }

    /// Returns how many data credits to lend at once: so many that half of a window is owed.
    pub(crate) fn loan(&self) -> u16 {
        let half = (self.data.window / 2).max(1);
        half.saturating_sub(self.data.owed)
    }

    /// Lends a data credit.
    pub(crate) fn lend(&mut self) {
        self.taken(Class::Data);
    }

    /// Records that a message of the peer was taken.
    pub(crate) fn taken(&mut self, class: Class) {
        let flow = self.flow(class);
        flow.owed = flow.owed.saturating_add(1).min(flow.window);
    }

    /// Returns the credits that this side may use, and those that the peer has or gets back.
    pub(crate) const fn census(&self) -> (Window, Window) {
        let ours = Window {
            data: self.data.have,
            control: self.control.have,
        };
        let peers = Window {
            data: self.data.granted,
            control: self.control.granted,
        };
        (ours, peers)
    }

    fn flow(&mut self, class: Class) -> &mut Flow {
        match class {
            Class::Data => &mut self.data,
            Class::Control => &mut self.control,
        }
    }
}
