// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Model of an Endpoint and its queues, which keeps the contract of `step`.

use crate::rust::model::ep::{
    flushes_posts,
    may_post_recv,
    may_post_request,
    step,
    Call,
    Close,
    ConnectionEvent,
    Effects,
    Input,
    Network,
    Phase,
    Progress, //
};

/// Next action of a sequence.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Feed(Input),
    /// Closes the ready gate of the next attempt.
    CloseGate,
    PostRecv,
    PostRequest,
    CompleteRecv,
    CompleteRequest,
}

/// An observation of the consumer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Observed {
    Event(ConnectionEvent),
    Dto,
    Flushed,
    Reset,
    Freed,
}

/// An Endpoint and its queues, as `dat/` keeps them.
#[derive(Debug)]
pub(super) struct Ep {
    pub(super) phase: Phase,
    /// The QP is in the error state, so posted DTOs flush.
    error: bool,
    pub(super) timer: bool,
    /// The consumer has closed the ready gate.
    gated: bool,
    receives: u32,
    /// Receives of these that have completed, and whose events are held back.
    held: u32,
    requests: u32,
    pub(super) log: Vec<Observed>,
}

impl Ep {
    pub(super) fn new(phase: Phase) -> Self {
        Self {
            phase,
            error: false,
            timer: false,
            gated: false,
            receives: 0,
            held: 0,
            requests: 0,
            log: Vec::new(),
        }
    }

    fn execute(&mut self, effects: Effects) {
        self.timer = (self.timer && !effects.stop_timer) || effects.start_timer;
        self.error |= effects.qp_error;
        if effects.qp_reset {
            self.error = false;
            self.receives = 0;
            self.held = 0;
            self.requests = 0;
            self.log.push(Observed::Reset);
        }
        if let Some(event) = effects.event {
            self.log.push(Observed::Event(event));
        }
    }

    /// Feeds an input, and the further inputs that the contract requires.
    fn feed(&mut self, input: Input) {
        // The idle inputs are fed only when they are true, and the timer expires only if it runs.
        match input {
            Input::Progress(Progress::RequestsIdle | Progress::Idle) => return self.settle(),
            Input::Network(Network::TimedOut) if !self.timer => return,
            Input::Call(Call::Ready) => self.gated = false,
            Input::Network(Network::Established) if self.gated => {
                return self.feed(Network::EstablishedGated.into())
            }
            Input::Network(Network::EstablishedGated) if !self.gated => return,
            _ => {}
        }
        if let Ok((phase, effects)) = step(self.phase, input) {
            if phase == Phase::Freed && self.phase != Phase::Freed {
                self.log.push(Observed::Freed);
            }
            self.phase = phase;
            // A connect that fails drops its effects, and does not start the timer.
            self.timer &= input != Input::Call(Call::ConnectAborted);
            self.execute(effects);
        }
        self.release_held();
        self.settle();
    }

    /// Reports the receives that are held back, once ESTABLISHED was reported or never will be.
    fn release_held(&mut self) {
        while self.held > 0 && !self.phase.holds_receives() {
            self.held -= 1;
            self.receives -= 1;
            self.report_dto();
        }
    }

    fn settle(&mut self) {
        for (progress, holds) in [
            (Progress::RequestsIdle, self.requests == 0),
            (Progress::Idle, self.requests == 0 && self.receives == 0),
        ] {
            if holds {
                let (phase, effects) =
                    step(self.phase, progress.into()).expect("an idle input is never refused");
                self.phase = phase;
                self.execute(effects);
            }
        }
    }

    fn report_dto(&mut self) {
        if self.phase != Phase::Freed {
            self.log.push(if self.error {
                Observed::Flushed
            } else {
                Observed::Dto
            });
        }
        self.settle();
    }

    pub(super) fn act(&mut self, act: Act) {
        match act {
            Act::Feed(input) => self.feed(input),
            // A DTO that is flushed at once is never outstanding.
            Act::PostRecv | Act::PostRequest if flushes_posts(self.phase) => {}
            Act::PostRecv => self.receives += u32::from(may_post_recv(self.phase).is_ok()),
            Act::PostRequest => self.requests += u32::from(may_post_request(self.phase).is_ok()),
            Act::CloseGate => self.gated |= matches!(self.phase, Phase::Unconnected(_)),
            Act::CompleteRecv if self.receives > self.held => {
                if !self.error {
                    // Data arrives only on a connection, or on one that the peer considers
                    // established.
                    self.feed(Network::Established.into());
                    if !self.phase.is_connected() {
                        return;
                    }
                }
                if self.phase.holds_receives() {
                    self.held += 1;
                    return;
                }
                self.receives -= 1;
                self.report_dto();
            }
            Act::CompleteRequest if self.requests > 0 => {
                self.requests -= 1;
                self.report_dto();
            }
            Act::CompleteRecv | Act::CompleteRequest => {}
        }
    }

    /// Disconnects, removes the device, and lets all posted DTOs complete.
    pub(super) fn finish(&mut self) {
        self.feed(Call::Disconnect(Close::Abrupt).into());
        self.feed(Network::DeviceRemoved.into());
        while self.receives > self.held || self.requests > 0 {
            if !self.error {
                break;
            }
            self.act(Act::CompleteRecv);
            self.act(Act::CompleteRequest);
        }
    }
}
