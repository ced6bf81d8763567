// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connects of a home: by one way to the peer after the other. A connect that finds no Endpoint on
//! any way that is left waits for one.

use super::{
    endings::EndsEndpoints,
    error::Error,
    home::Close,
    peer::{
        PeerId,
        RailId, //
    },
    postponed::{
        Postponed,
        Waiters, //
    },
    routes::{
        Destination,
        Route, //
    },
    ways::Short,
    wire::Hello, //
};

/// Home that connects rails.
pub(crate) trait Connects: EndsEndpoints {
    /// Storage of the connects that wait.
    type Waiters: Waiters;

    /// Returns the connects that wait.
    fn postponed(&mut self) -> &mut Postponed<Self::Waiters>;

    /// Returns the time in milliseconds.
    fn now(&self) -> u64;

    /// Returns the hosts of a peer whose address is known.
    fn destination(&self, peer: PeerId) -> Option<Destination<'_>>;

    /// Returns the route of a rail.
    fn route(&self, rail: RailId) -> Option<&Route>;

    /// Returns the route of a rail, to change it.
    fn route_mut(&mut self, rail: RailId) -> Option<&mut Route>;

    /// Sets the route of a rail.
    fn set_route(&mut self, rail: RailId, route: Route);

    /// Reports that the first rail of a session has another route from this device on, and tries
    /// the way with this number first from now on.
    fn moved(&mut self, rail: RailId, device: u8, way: usize);

    /// Returns the number of devices, with those that were removed.
    fn devices(&self) -> u8;

    /// Notes that a device was removed.
    fn lose_device(&mut self, device: u8);

    /// Creates the Endpoint of a rail, and begins to connect it by its route.
    ///
    /// # Errors
    ///
    /// [`Error::NoMemory`] if there is no Endpoint.
    fn try_connect(&mut self, rail: RailId, hello: &Hello) -> Result<(), Error>;

    /// Replaces receives that were lost with the Endpoint of a rail.
    fn forget_receives(&mut self, rail: RailId);

    /// Returns the device of a rail.
    fn device_of(&self, rail: RailId) -> u8 {
        self.route(rail).map_or(0, |route| route.device)
    }

    /// Chooses the route of a rail. Returns its device.
    fn choose(&mut self, rail: RailId, hello: &Hello, anywhere: bool) -> u8 {
        let first = self.route(RailId { rail: 0, ..rail });
        let beside = first.filter(|_| rail.rail > 0 && !anywhere);
        let to = self.destination(rail.peer);
        let route = Route::choose(rail.rail, to.as_ref(), beside, hello);
        self.set_route(rail, route);
        route.device
    }

    /// Returns the next route of a rail, the number of its way and its private data.
    fn next_route(&self, rail: RailId, short: Short) -> Option<(Route, usize, Hello)> {
        self.route(rail)?.next(&self.destination(rail.peer)?, short)
    }

    /// Returns whether a rail has a way left, from a device that is not short of Endpoints.
    fn has_way(&self, rail: RailId, short: Short) -> bool {
        self.next_route(rail, short).is_some()
    }

    /// Chooses another route for a rail without Endpoint, which has begun a session and was not
    /// established, from a device that is not short of Endpoints. Returns its private data, if
    /// there is a way left.
    fn choose_again(&mut self, rail: RailId, short: Short) -> Option<Hello> {
        let (route, way, hello) = self.next_route(rail, short)?;
        self.set_route(rail, route);
        self.moved(rail, route.device, way);
        Some(hello)
    }

    /// Connects a rail, by another way if the first one fails at once.
    fn begin_connect(&mut self, rail: RailId, hello: &Hello) {
        let mut short = Short::default();
        if let Err(error) = self.try_connect(rail, hello) {
            self.not_begun(rail, error, &mut short);
            self.go_on(rail, Some(error), &mut short);
        }
    }

    /// Continues with a rail without Endpoint: tries another way, or waits for an Endpoint, or
    /// reports the end for this reason.
    fn go_on(&mut self, rail: RailId, reason: Option<Error>, short: &mut Short) {
        let Err(reason) = self.connect_again(rail, reason, short) else {
            return;
        };
        // Only a session without connections is worth an idle one.
        let now = self.now();
        let waits = self.has_way(rail, Short::default()) && self.postponed().push(rail, now);
        if !waits {
            self.close_rail(rail, reason);
        }
    }

    /// Connects a rail without Endpoint by the next way that is left. `short` gets the devices that
    /// have no Endpoint.
    ///
    /// # Errors
    ///
    /// The reason of the last failure. There may be ways from devices that have no Endpoint.
    fn connect_again(
        &mut self,
        rail: RailId,
        mut reason: Option<Error>,
        short: &mut Short,
    ) -> Result<(), Option<Error>> {
        while let Some(hello) = self.choose_again(rail, *short) {
            let Err(error) = self.try_connect(rail, &hello) else {
                return Ok(());
            };
            self.not_begun(rail, error, short);
            reason = Some(error);
        }
        Err(reason)
    }

    /// Notes that a connect has not begun. Without an Endpoint, the way counts as not tried.
    fn not_begun(&mut self, rail: RailId, error: Error, short: &mut Short) {
        let device = self.device_of(rail);
        let had_ep = self.free_unconnected(rail);
        if error == Error::NoMemory {
            return short.add(device);
        }
        if had_ep {
            self.ep_was_freed();
        }
        self.attempt_failed(rail);
        self.note_loss(device, Some(error));
    }

    /// Frees the Endpoint of a rail, if it has one, at once: it has not begun to connect. Returns
    /// whether it had one.
    fn free_unconnected(&mut self, rail: RailId) -> bool {
        let Some(ep) = self.take_ep(rail) else {
            return false;
        };
        drop(ep);
        self.forget_receives(rail);
        true
    }

    /// Notes that the last attempt to connect a rail has failed.
    fn attempt_failed(&mut self, rail: RailId) {
        if let Some(route) = self.route_mut(rail) {
            route.fail();
        }
    }

    /// Notes that a rail is established, or is being closed: it is not connected again.
    fn settle_route(&mut self, rail: RailId) {
        if let Some(route) = self.route_mut(rail) {
            route.settle();
        }
    }

    /// Notes that a connection from a device has ended, or was not established, for this reason.
    fn connection_lost(&mut self, rail: RailId, device: u8, reason: Option<Error>) {
        self.note_loss(device, reason);
        if reason == Some(Error::Version) {
            // Each way leads to the same peer.
            self.settle_route(rail);
        }
        // The free of the Endpoint sleeps. After it, another way is tried.
        self.close_rail(rail, reason);
    }

    /// Continues after the free of an Endpoint. If its session has not begun, the peer may be
    /// reached by another way.
    fn try_other_way(&mut self, rail: RailId, reason: Option<Error>) {
        self.ep_was_freed();
        self.attempt_failed(rail);
        self.go_on(rail, reason, &mut Short::default());
    }

    /// Notes that a device was removed, if that is why a connect has failed. Without another
    /// device, an event says so.
    fn note_loss(&mut self, device: u8, reason: Option<Error>) {
        if reason == Some(Error::DeviceLost) && self.devices() > 1 {
            self.lose_device(device);
        }
    }

    /// Disconnects a rail for the engine.
    fn leave(&mut self, rail: RailId, how: Close) {
        self.postponed().forget(rail);
        self.settle_route(rail);
        self.begin_disconnect(rail, how);
    }

    /// Notes that an Endpoint was freed.
    fn ep_was_freed(&mut self) {
        let now = self.now();
        self.postponed().ep_was_freed(now);
    }

    /// Tries all connects that wait again, the oldest one first. Those whose devices have no
    /// Endpoint keep their turns.
    fn retry_postponed(&mut self) {
        let (mut short, mut place) = (Short::default(), 0);
        while let Some(rail) = self.postponed().get(place) {
            if !self.has_way(rail, short) && self.has_way(rail, Short::default()) {
                place += 1;
                continue;
            }
            let Some(waiter) = self.postponed().take(place) else {
                break;
            };
            let Err(reason) = self.connect_again(rail, Some(Error::NoMemory), &mut short) else {
                continue;
            };
            if !self.has_way(rail, Short::default()) {
                self.close_rail(rail, reason);
                continue;
            }
            self.postponed().put_back(place, waiter);
            place += 1;
        }
        if place > 0 {
            let now = self.now();
            self.postponed().shortage.go_on(now);
        }
    }

    /// Tries the connects that wait again if an Endpoint was freed. Returns whether one was.
    fn retry_if_freed(&mut self) -> bool {
        let was_freed = self.postponed().take_freed();
        if was_freed {
            self.retry_postponed();
        }
        was_freed
    }

    /// Asks another session to leave if a connect waits, since the one that was asked stays.
    fn session_stays(&mut self) {
        let now = self.now();
        self.postponed().session_stays(now);
    }

    /// Fails the last connect that waits, unless an Endpoint may be had soon: there is no idle
    /// session.
    fn fail_postponed(&mut self) {
        let now = self.now();
        if self.postponed().shortage.expects_ep(now) {
            return;
        }
        if let Some(rail) = self.postponed().pop() {
            self.close_rail(rail, Some(Error::NoMemory));
        }
    }

    /// Fails all connects that wait: no device is left.
    fn fail_all_postponed(&mut self) {
        while let Some(rail) = self.postponed().pop() {
            self.close_rail(rail, Some(Error::DeviceLost));
        }
    }

    /// Lets time pass: tries again, and fails the connects that have waited for too long.
    fn tick_postponed(&mut self) {
        let now = self.now();
        if self.postponed().shortage.tick(now) {
            self.retry_postponed();
        }
        while let Some(rail) = self.postponed().take_expired(now) {
            self.close_rail(rail, Some(Error::NoMemory));
        }
    }
}
