// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ends of Endpoints, outside of the lock of a home.
//!
//! The disconnect and the free of an Endpoint sleep, over iWARP up to a second. Under the lock of
//! the home, all peers would wait for that. So the home queues the Endpoint, and a worker takes it
//! from the queue and makes the call without the lock. An end has this order:
//!
//! 1. The home takes the Endpoint out of its tables, so that it posts nothing more.
//! 2. The worker frees the Endpoint.
//! 3. Under the lock, the home forgets the receives and requests of the Endpoint. Their memory is
//!    not used again before.
//! 4. The home reports the rail as closed, and the engine may connect to the peer again. If the
//!    attempt to begin a session has failed, the home tries another way to the peer first.
//!
//! The queue is bounded. If it is full, the home makes the call itself, under its lock.

use super::{
    error::Error,
    home::Close,
    peer::RailId, //
};
use core::{
    marker::PhantomData,
    mem,
    ops::DerefMut, //
};

/// Returns the number of rails that a home should let the queue have, if its peers have `rails`
/// each.
pub(crate) const fn ending_places(rails: u8) -> usize {
    (rails as usize).saturating_mul(64)
}

/// Call that sleeps.
#[derive(Debug)]
pub(crate) enum Task<E> {
    /// Disconnects an Endpoint, which the home keeps.
    Disconnect(E, Close),
    /// Frees an Endpoint: its last reference.
    Free(E),
}

/// What the home has to do after a task, under its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: the event of the connection's end follows, or another task.
    Wait,
    /// Closes the rail, whose disconnect was refused. No event follows.
    Close(RailId),
    /// Forgets the rail, whose Endpoint is freed, and reports it as closed for this reason.
    Freed(RailId, Option<Error>),
}

/// State of a rail in the queue.
#[derive(Debug)]
enum State<E> {
    /// The task waits for the worker. A free has its reason.
    Waiting(Task<E>, Option<Error>),
    /// The worker disconnects the Endpoint. The home has closed the rail since then, if there is an
    /// Endpoint to free.
    Disconnecting(Option<(E, Option<Error>)>),
    /// The worker frees the Endpoint.
    Freeing(Option<Error>),
}

impl<E> State<E> {
    /// Returns whether the Endpoint is to be freed.
    const fn frees(&self) -> bool {
        match self {
            Self::Waiting(Task::Free(_), _) | Self::Disconnecting(Some(_)) | Self::Freeing(_) => {
                true
            }
            Self::Waiting(Task::Disconnect(..), _) | Self::Disconnecting(None) => false,
        }
    }
}

/// Rail in the queue.
#[derive(Debug)]
pub(crate) struct Ending<E> {
    rail: RailId,
    /// Position in the order of the tasks.
    turn: u64,
    state: State<E>,
}

/// Queue of Endpoints, in storage of the home.
#[derive(Debug)]
pub(crate) struct Endings<E, Q> {
    places: Q,
    turns: u64,
    /// Tasks may wait: one was queued since the queue was found empty.
    has_tasks: bool,
    /// The worker was asked to come, and has not found the queue empty since then.
    is_called: bool,
    is_stopped: bool,
    _eps: PhantomData<E>,
}

impl<E, Q: DerefMut<Target = [Option<Ending<E>>]>> Endings<E, Q> {
    /// Creates a queue for as many rails as there are places. They are `None`.
    pub(crate) const fn new(places: Q) -> Self {
        Self {
            places,
            turns: 0,
            has_tasks: false,
            is_called: false,
            is_stopped: false,
            _eps: PhantomData,
        }
    }

    /// Queues a disconnect.
    ///
    /// # Errors
    ///
    /// Returns the Endpoint if the home has to disconnect it.
    pub(crate) fn disconnect(&mut self, rail: RailId, ep: E, how: Close) -> Result<(), E> {
        if self.find(rail).is_some() {
            return Ok(());
        }
        self.add(rail, Task::Disconnect(ep, how), None)
            .map_err(endpoint)
    }

    /// Queues the free of an Endpoint that the home has taken out of its tables. A disconnect that
    /// waits is not needed any more.
    ///
    /// # Errors
    ///
    /// Returns the Endpoint if the home has to free it.
    pub(crate) fn free(&mut self, rail: RailId, ep: E, reason: Option<Error>) -> Result<(), E> {
        match self.find(rail).map(|ending| &mut ending.state) {
            Some(State::Disconnecting(then)) => *then = Some((ep, reason)),
            Some(state) => {
                *state = State::Waiting(Task::Free(ep), reason);
                self.has_tasks = true;
            }
            None => {
                let added = self.add(rail, Task::Free(ep), reason);
                return added.map_err(endpoint);
            }
        }
        Ok(())
    }

    /// Returns whether the Endpoint of a rail is to be freed. Then the rail is reported as closed
    /// afterwards.
    pub(crate) fn frees(&self, rail: RailId) -> bool {
        let mut endings = self.places.iter().flatten();
        endings.any(|ending| ending.rail == rail && ending.state.frees())
    }

    /// Returns whether to call the worker, once until it has found the queue empty.
    pub(crate) fn call(&mut self) -> bool {
        let wanted = self.has_tasks && !self.is_called;
        self.is_called |= wanted;
        wanted
    }

    /// Takes the next task. The worker passes its rail to [`Self::done`] afterwards.
    pub(crate) fn take(&mut self) -> Option<(RailId, Task<E>)> {
        let endings = self.places.iter_mut().flatten();
        let waiting = endings.filter(|ending| matches!(ending.state, State::Waiting(..)));
        let Some(ending) = waiting.min_by_key(|ending| ending.turn) else {
            (self.has_tasks, self.is_called) = (false, false);
            return None;
        };
        match mem::replace(&mut ending.state, State::Disconnecting(None)) {
            State::Waiting(task, reason) => {
                if matches!(task, Task::Free(_)) {
                    ending.state = State::Freeing(reason);
                }
                Some((ending.rail, task))
            }
            State::Disconnecting(_) | State::Freeing(_) => None,
        }
    }

    /// Notes that the task of a rail was carried out. Returns what to do next.
    pub(crate) fn done(&mut self, rail: RailId, succeeded: bool) -> Next {
        let mut places = self.places.iter_mut();
        let found = places.find(|place| place.as_ref().is_some_and(|found| found.rail == rail));
        let Some((place, ending)) =
            found.and_then(|place| place.take().map(|ending| (place, ending)))
        else {
            return Next::Wait;
        };
        match ending.state {
            State::Freeing(reason) => Next::Freed(rail, reason),
            State::Disconnecting(None) if succeeded => Next::Wait,
            State::Disconnecting(None) => Next::Close(rail),
            State::Disconnecting(Some((ep, reason))) => {
                let state = State::Waiting(Task::Free(ep), reason);
                *place = Some(Ending { state, ..ending });
                self.has_tasks = true;
                Next::Wait
            }
            State::Waiting(..) => {
                *place = Some(ending);
                Next::Wait
            }
        }
    }

    /// Notes that the worker ends when the queue is empty. No other rail is queued from now on.
    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
    }

    fn find(&mut self, rail: RailId) -> Option<&mut Ending<E>> {
        let mut endings = self.places.iter_mut().flatten();
        endings.find(|ending| ending.rail == rail)
    }

    fn add(&mut self, rail: RailId, task: Task<E>, reason: Option<Error>) -> Result<(), Task<E>> {
        let turn = self.turns;
        let free = self.places.iter_mut().find(|place| place.is_none());
        let Some(place) = free.filter(|_| !self.is_stopped) else {
            return Err(task);
        };
        self.turns = turn.wrapping_add(1);
        self.has_tasks = true;
        *place = Some(Ending {
            rail,
            turn,
            state: State::Waiting(task, reason),
        });
        Ok(())
    }
}

/// Home whose Endpoints a worker disconnects and frees.
pub(crate) trait EndsEndpoints {
    /// Reference to an Endpoint. The drop of the last one frees it, which sleeps.
    type Ep;
    /// Storage of the queue.
    type Places: DerefMut<Target = [Option<Ending<Self::Ep>>]>;

    /// Returns the queue.
    fn endings(&mut self) -> &mut Endings<Self::Ep, Self::Places>;

    /// Returns the Endpoint of a rail.
    fn ep_of(&self, rail: RailId) -> Option<Self::Ep>;

    /// Takes the Endpoint of a rail out of the tables.
    fn take_ep(&mut self, rail: RailId) -> Option<Self::Ep>;

    /// Disconnects an Endpoint, which sleeps. Returns whether an event of the end follows, or is on
    /// its way already.
    fn disconnect_ep(ep: &Self::Ep, how: Close) -> bool;

    /// Reports the end of a rail that has no Endpoint.
    fn closed(&mut self, rail: RailId, reason: Option<Error>);

    /// Forgets a rail whose Endpoint was freed. Connects it by another way, or reports its end.
    fn freed(&mut self, rail: RailId, reason: Option<Error>);

    /// Disconnects a rail.
    fn begin_disconnect(&mut self, rail: RailId, how: Close) {
        let Some(ep) = self.ep_of(rail) else {
            return self.close_rail(rail, None);
        };
        let refused = self.endings().disconnect(rail, ep, how);
        if refused.is_err_and(|ep| !Self::disconnect_ep(&ep, how)) {
            self.close_rail(rail, None);
        }
    }

    /// Frees the Endpoint of a rail, and calls [`Self::freed`] afterwards. Nothing is outstanding
    /// on it.
    fn close_rail(&mut self, rail: RailId, reason: Option<Error>) {
        let Some(ep) = self.take_ep(rail) else {
            if !self.endings().frees(rail) {
                self.closed(rail, reason);
            }
            return;
        };
        if let Err(ep) = self.endings().free(rail, ep, reason) {
            drop(ep);
            self.freed(rail, reason);
        }
    }

    /// Carries out a task, which sleeps. Returns whether it has succeeded.
    fn carry_out(task: Task<Self::Ep>) -> bool {
        match task {
            Task::Disconnect(ep, how) => Self::disconnect_ep(&ep, how),
            Task::Free(ep) => {
                drop(ep);
                true
            }
        }
    }

    /// Continues after a task.
    fn task_done(&mut self, rail: RailId, succeeded: bool) {
        match self.endings().done(rail, succeeded) {
            Next::Wait => {}
            Next::Close(rail) => self.close_rail(rail, None),
            Next::Freed(rail, reason) => self.freed(rail, reason),
        }
    }

    /// Carries out the tasks that wait for the worker.
    fn carry_out_waiting(&mut self) {
        while let Some((rail, task)) = self.endings().take() {
            let succeeded = Self::carry_out(task);
            self.task_done(rail, succeeded);
        }
    }
}

/// Returns the Endpoint of a task.
fn endpoint<E>(task: Task<E>) -> E {
    match task {
        Task::Disconnect(ep, _) | Task::Free(ep) => ep,
    }
}
