// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Table of the Endpoint's state machine: one row for each input, one column for each phase.

use crate::rust::model::ep::{
    AcceptFrom,
    Call,
    Close,
    Configuration,
    FinalEvent,
    GatedSide,
    Input,
    Network,
    Paths,
    Phase,
    Progress,
    State, //
};

/// Every phase, with its name in the table, its state, and the subtype of the state.
pub(super) const PHASES: [(&str, Phase, State, u32); 25] = [
    (
        "U",
        Phase::Unconnected(Configuration::Complete),
        State::Unconnected,
        47,
    ),
    (
        "u",
        Phase::Unconnected(Configuration::Incomplete),
        State::UnconfiguredUnconnected,
        63,
    ),
    (
        "R",
        Phase::Reserved(Configuration::Complete),
        State::Reserved,
        53,
    ),
    (
        "r",
        Phase::Reserved(Configuration::Incomplete),
        State::UnconfiguredReserved,
        64,
    ),
    (
        "P",
        Phase::Passive(Configuration::Complete),
        State::PassiveConnectionPending,
        49,
    ),
    (
        "p",
        Phase::Passive(Configuration::Incomplete),
        State::UnconfiguredPassive,
        65,
    ),
    (
        "T",
        Phase::Tentative(Configuration::Complete),
        State::TentativeConnectionPending,
        50,
    ),
    (
        "t",
        Phase::Tentative(Configuration::Incomplete),
        State::UnconfiguredTentative,
        66,
    ),
    (
        "Cg",
        Phase::Connecting(Paths::Plain),
        State::ActiveConnectionPending,
        48,
    ),
    (
        "G1",
        Phase::Connecting(Paths::Single),
        State::ActiveConnectionPending,
        48,
    ),
    (
        "AU",
        Phase::Accepting(AcceptFrom::Unconnected),
        State::CompletionPending,
        54,
    ),
    (
        "AP",
        Phase::Accepting(AcceptFrom::Passive),
        State::CompletionPending,
        54,
    ),
    (
        "AT",
        Phase::Accepting(AcceptFrom::Tentative),
        State::CompletionPending,
        54,
    ),
    (
        "H",
        Phase::Gated(GatedSide::Active(Paths::Plain)),
        State::ActiveConnectionPending,
        48,
    ),
    (
        "H1",
        Phase::Gated(GatedSide::Active(Paths::Single)),
        State::ActiveConnectionPending,
        48,
    ),
    (
        "HP",
        Phase::Gated(GatedSide::Passive),
        State::CompletionPending,
        54,
    ),
    (
        "HD",
        Phase::GatedEnded(FinalEvent::Disconnected),
        State::DisconnectPending,
        55,
    ),
    (
        "HB",
        Phase::GatedEnded(FinalEvent::Broken),
        State::DisconnectPending,
        55,
    ),
    ("C", Phase::Connected(Paths::Plain), State::Connected, 51),
    (
        "C1",
        Phase::Connected(Paths::Single),
        State::ConnectedSinglePath,
        51,
    ),
    ("Dr", Phase::Draining, State::DisconnectPending, 55),
    (
        "FD",
        Phase::Flushing(FinalEvent::Disconnected),
        State::DisconnectPending,
        55,
    ),
    (
        "FB",
        Phase::Flushing(FinalEvent::Broken),
        State::DisconnectPending,
        55,
    ),
    ("D", Phase::Disconnected, State::Disconnected, 52),
    ("X", Phase::Freed, State::Disconnected, 12),
];

/// Every input, with its name in the table.
pub(in crate::tests) const INPUTS: [(&str, Input); 26] = [
    ("Connect", Input::Call(Call::Connect(Paths::Plain))),
    ("ConnectSingle", Input::Call(Call::Connect(Paths::Single))),
    ("ConnectAborted", Input::Call(Call::ConnectAborted)),
    ("Accept", Input::Call(Call::Accept)),
    ("AcceptAborted", Input::Call(Call::AcceptAborted)),
    ("Ready", Input::Call(Call::Ready)),
    ("Abrupt", Input::Call(Call::Disconnect(Close::Abrupt))),
    ("Graceful", Input::Call(Call::Disconnect(Close::Graceful))),
    ("Reset", Input::Call(Call::Reset)),
    ("Free", Input::Call(Call::Free)),
    ("Configured", Input::Call(Call::Configured)),
    ("Reserve", Input::Call(Call::Reserve)),
    ("Release", Input::Call(Call::Release)),
    ("Requested", Input::Call(Call::Requested)),
    ("Established", Input::Network(Network::Established)),
    (
        "EstablishedGated",
        Input::Network(Network::EstablishedGated),
    ),
    ("PeerRejected", Input::Network(Network::PeerRejected)),
    ("NonPeerRejected", Input::Network(Network::NonPeerRejected)),
    ("Unreachable", Input::Network(Network::Unreachable)),
    ("TimedOut", Input::Network(Network::TimedOut)),
    ("AcceptFailed", Input::Network(Network::AcceptFailed)),
    (
        "PeerDisconnected",
        Input::Network(Network::PeerDisconnected),
    ),
    ("Broken", Input::Network(Network::Broken)),
    ("RequestsIdle", Input::Progress(Progress::RequestsIdle)),
    ("Idle", Input::Progress(Progress::Idle)),
    ("DeviceRemoved", Input::Network(Network::DeviceRemoved)),
];

/// Transitions. `!` means that the input is refused, `.` that it changes nothing. Otherwise a cell
/// contains the next phase, `/` and the effects:
///
/// * t(imer starts), s(top timer), e(rror the QP), r(eset the QP), d(isconnect), a(bandon the id),
///   b(roken: reported on the asynchronous EVD);
/// * after `=` the event: E(stablished), P(eer rejected), N(on-peer rejected), A(ccept completion
///   error), D(isconnected), B(roken), T(imed out), U(nreachable).
pub(super) const TABLE: &str = "
                  U     u     R     r   P     p   T     t     Cg       G1       AU       AP       AT       H        H1       HP       HD       HB       C       C1      Dr      FD     FB     D     X
Connect           Cg/t  !     !     !   !     !   !     !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
ConnectSingle     G1/t  !     !     !   !     !   !     !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
ConnectAborted    !     !     !     !   !     !   !     !     U/a      U/a      !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
Accept            AU/   !     !     !   AP/   !   AT/   !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
AcceptAborted     !     !     !     !   !     !   !     !     !        !        U/       P/       T/       !        !        !        !        !        !       !       !       !      !      !     !
Ready             !     !     !     !   !     !   !     !     .        .        .        .        .        C/=E     C1/=E    C/=E     FD/=E    FB/=E    .       .       !       !      !      !     !
Abrupt            D/e   !     !     !   !     !   !     !     FD/sea   FD/sea   FD/seda  FD/seda  FD/seda  FD/ed    FD/ed    FD/ed    FD/      FB/      FD/ed   FD/ed   FD/ed   .      .      .     !
Graceful          D/e   !     !     !   !     !   !     !     FD/sea   FD/sea   FD/seda  FD/seda  FD/seda  FD/ed    FD/ed    FD/ed    FD/      FB/      Dr/     Dr/     .       .      .      .     !
Reset             .     .     !     !   !     !   !     !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      U/ra  !
Free              X/ea  X/ea  !     !   !     !   !     !     X/sea    X/sea    X/sea    X/sea    X/sea    X/seda   X/seda   X/seda   X/ea     X/ea     X/seda  X/seda  X/eda   X/ea   X/ea   X/ea  !
Configured        .     U/    .     R/  .     P/  .     T/    !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
Reserve           R/    r/    !     !   !     !   !     !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
Release           .     .     U/    u/  U/    u/  X/ea  X/ea  .        .        .        .        .        .        .        .        .        .        .       .       .       .      .      .     .
Requested         !     !     P/    p/  !     !   !     !     !        !        !        !        !        !        !        !        !        !        !       !       !       !      !      !     !
Established       .     .     .     .   .     .   .     .     C/s=E    C1/s=E   C/s=E    C/s=E    C/s=E    .        .        .        .        .        .       .       .       .      .      .     .
EstablishedGated  .     .     .     .   .     .   .     .     H/s      H1/s     HP/s     HP/s     HP/s     .        .        .        .        .        .       .       .       .      .      .     .
PeerRejected      .     .     .     .   .     .   .     .     D/se=P   D/se=P   D/se=A   D/se=A   D/se=A   HD/ed    HD/ed    HD/ed    .        .        FD/ed   FD/ed   FD/ed   .      .      .     .
NonPeerRejected   .     .     .     .   .     .   .     .     D/se=N   D/se=N   D/se=A   D/se=A   D/se=A   HD/ed    HD/ed    HD/ed    .        .        FD/ed   FD/ed   FD/ed   .      .      .     .
Unreachable       .     .     .     .   .     .   .     .     D/se=U   D/se=U   D/se=A   D/se=A   D/se=A   HB/ed    HB/ed    HB/ed    .        .        FB/ed   FB/ed   FB/ed   .      .      .     .
TimedOut          .     .     .     .   .     .   .     .     D/sea=T  D/sea=T  .        .        .        .        .        .        .        .        .       .       .       .      .      .     .
AcceptFailed      .     .     .     .   .     .   .     .     D/se=N   D/se=N   D/se=A   D/se=A   D/se=A   HB/ed    HB/ed    HB/ed    .        .        FB/ed   FB/ed   FB/ed   .      .      .     .
PeerDisconnected  .     .     .     .   .     .   .     .     D/sed=N  D/sed=N  D/sed=A  D/sed=A  D/sed=A  HD/ed    HD/ed    HD/ed    .        .        FD/ed   FD/ed   FD/ed   .      .      .     .
Broken            D/eb  .     D/eb  .   D/eb  .   D/eb  .     D/se=N   D/se=N   D/se=A   D/se=A   D/se=A   HB/ed    HB/ed    HB/ed    .        .        FB/ed   FB/ed   FB/ed   .      .      .     .
RequestsIdle      .     .     .     .   .     .   .     .     .        .        .        .        .        .        .        .        .        .        .       .       FD/ed   .      .      .     .
Idle              .     .     .     .   .     .   .     .     .        .        .        .        .        .        .        .        .        .        .       .       D/ed=D  D/=D   D/=B   .     .
DeviceRemoved     D/ea  .     D/ea  .   D/ea  .   D/ea  .     D/sea=N  D/sea=N  D/sea=A  D/sea=A  D/sea=A  FB/ea=E  FB/ea=E  FB/ea=E  FD/ea=E  FB/ea=E  FB/ea   FB/ea   FB/ea   FD/ea  FB/ea  D/ea  .
";
